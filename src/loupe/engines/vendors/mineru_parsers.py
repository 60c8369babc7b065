"""Read pages with both interfaces of MinerU: `do_parse` of versions 2 and 3, `MinerUParser` of version 4.

`do_parse` writes a folder of files for one page, and they are read back.
Source: `mineru/cli/common.py` of opendatalab/MinerU @ 79d6d8d7 (3.4.4); docs/protocols/engines.md#mineru.

`MinerUParser` is what `mineru-kit parse` calls for a local page; in a worker it keeps its models.
Source: `mineru/parser` of PyPI mineru 4.0.12 and the schema of docvortex 0.6.4; docs/protocols/engines.md#mineru.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from loupe.engines.vendors.regions import WHOLE, region
from loupe.errors import EngineError
from loupe.files.scratch import scratch_folder
from loupe.types import Output, PdfPage, Request

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


#: Blocks inside blocks inside spans; deeper is no page.
_DEEPEST = 20


class Tiers:
    """The parser of the package, with our settings. A server that nobody named is named as none, over its own files."""

    def __init__(self, *, tier: str, method: str, image_analysis: bool, server_url: str, model: str) -> None:
        # Text that stands in a PDF needs no model.
        self._wants_models = (tier, method) != ("flash", "txt")
        config = import_module("mineru.config")
        server = config.VlmConfig(server_url=server_url, model=model, api_key="")
        self._parser = import_module("mineru.parser").MinerUParser(
            tier=tier, parse_mode=method, image_analysis=image_analysis, vlm_config=server
        )

    def warm_up(self) -> None:
        """Have the package load its models, on a page of ours."""
        if not self._wants_models:
            return
        with scratch_folder("loupe-mineru-") as folder:
            self._parser.parse(draw_page(folder / "warm-up.png"))

    def read(self, request: Request) -> Output:
        """The page as the package has it: Markdown, and the blocks of its middle JSON."""
        path, page = file_and_page(request)
        result = self._parser.parse(path, page_range="" if page is None else str(page))
        files = _Files()
        result.save(files)
        pages = json.loads(files.texts["middle_json.json"]).get("pages", [])
        if len(pages) != 1:
            raise EngineError(f"mineru gave {len(pages)} pages for one")
        regions = [
            region(
                number,
                str(block.get("type", "")),
                _text_below(block),
                block.get("bbox"),
                size=(1, 1),
                score=block.get("score"),
            )
            for number, block in enumerate(pages[0].get("blocks", []))
        ]
        return Output(text=files.texts["markdown.md"], response={"regions": regions})


class _Files:
    """Where the package saves a result. Saved, its Markdown names pictures; else it holds them, megabytes of base64."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def write_string(self, path: str, data: str) -> None:
        self.texts[path] = data

    def write(self, path: str, data: bytes) -> None:
        """A picture; nobody asks for it."""


def _text_below(node: Any, depth: int = 0) -> str:
    """The text below a block: its content is a text, or spans, or further blocks."""
    if isinstance(node, str):
        return node
    if depth > _DEEPEST:
        return ""
    if isinstance(node, Mapping):
        return _text_below(node.get("content", ""), depth + 1)
    if isinstance(node, list):
        blocks = any(isinstance(each, Mapping) and "bbox" in each for each in node)
        return ("\n" if blocks else "").join(_text_below(each, depth + 1) for each in node)
    return ""


def file_and_page(request: Request) -> tuple[Path, int | None]:
    """The file of a page, and its number from 1 if it is one of a PDF."""
    (source,) = request.images
    if isinstance(source, PdfPage):
        return source.path, source.page
    assert isinstance(source, Path)
    return source, None


def draw_page(path: Path) -> Path:
    """A page with some words and a ruled table, as a PNG: what it takes to make the package load its models."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (900, 1200), "white")
    pen = ImageDraw.Draw(image)
    for line in range(8):
        pen.text((90, 90 + 32 * line), "Loupe reads this page before it reads yours.", fill="black", font_size=24)
    for step in range(4):
        pen.line([(90, 500 + 60 * step), (810, 500 + 60 * step)], fill="black", width=2)
        pen.line([(90 + 240 * step, 500), (90 + 240 * step, 680)], fill="black", width=2)
    for row in range(3):
        for column in range(3):
            pen.text((110 + 240 * column, 515 + 60 * row), f"{row}.{column}", fill="black", font_size=24)
    image.save(path)
    return path
