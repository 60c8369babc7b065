"""MinerU 2 and 3: `do_parse` writes a folder of files for one page, and they are read back.

Source: `mineru/cli/common.py` of opendatalab/MinerU @ 79d6d8d7 (3.4.4); docs/protocols/engines.md#mineru.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from loupe.engines.vendors.mineru_pages import draw_page, file_and_page
from loupe.engines.vendors.regions import WHOLE, region
from loupe.errors import EngineError
from loupe.files.scratch import scratch_folder
from loupe.types import Output, Request

_STEM = "page"
#: Options that versions before 3 have not; an unknown one would be passed on to a model.
_NEWER = ("image_analysis", "effort")
#: What a block of the content list holds its text in, by what it is.
_TEXT_KEYS = ("text", "table_body", "code_body", "content")


class Backends:
    """The functions of the package, with our settings."""

    def __init__(self, *, language: str, **options: Any) -> None:
        package = import_module("mineru.cli.common")
        known = inspect.signature(package.do_parse).parameters
        self._options = {name: value for name, value in options.items() if name not in _NEWER or name in known}
        self._language = language
        self._do_parse, self._read_fn = package.do_parse, package.read_fn

    def warm_up(self) -> None:
        """Have the package load its models, on a page of ours."""
        with scratch_folder("loupe-mineru-") as folder:
            self._parse(draw_page(folder / "warm-up.png"), None)

    def read(self, request: Request) -> Output:
        """The page as the package has it: Markdown, and the areas of its content list."""
        return self._parse(*file_and_page(request))

    def _parse(self, path: Path, page: int | None) -> Output:
        # An image becomes a PDF of one page here.
        data = self._read_fn(path)
        chosen = {} if page is None else {"start_page_id": page - 1, "end_page_id": page - 1}
        with scratch_folder("loupe-mineru-") as folder:
            self._do_parse(
                str(folder),
                pdf_file_names=[_STEM],
                pdf_bytes_list=[data],
                p_lang_list=[self._language],
                f_draw_layout_bbox=False,
                f_draw_span_bbox=False,
                f_dump_md=True,
                f_dump_middle_json=False,
                f_dump_model_output=False,
                f_dump_orig_pdf=False,
                f_dump_content_list=True,
                **chosen,
                **self._options,
            )
            return _written(folder)


def _written(folder: Path) -> Output:
    """What `do_parse` left: OUT/page/METHOD/page.md and its content list. The way decides what METHOD is called."""
    found = sorted(folder.glob(f"{_STEM}/*/{_STEM}.md"))
    if len(found) != 1:
        raise EngineError(f"mineru wrote {len(found)} Markdown files for one page")
    listed = found[0].with_name(f"{_STEM}_content_list.json")
    blocks = json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else []
    regions = [
        region(number, _label(block), _text(block), block.get("bbox"), size=(WHOLE, WHOLE), score=block.get("score"))
        for number, block in enumerate(blocks)
    ]
    text = found[0].read_text(encoding="utf-8", errors="replace")
    return Output(text=text, response={"regions": regions})


def _label(block: Mapping[str, Any]) -> str:
    return "title" if block.get("text_level") else str(block.get("type", ""))


def _text(block: Mapping[str, Any]) -> str:
    found = next((block[key] for key in _TEXT_KEYS if isinstance(block.get(key), str)), None)
    return found if found is not None else "\n".join(map(str, block.get("list_items") or []))
