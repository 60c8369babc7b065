"""MinerU: `do_parse` of versions 2 and 3, `MinerUParser` of version 4; the installed version decides.

`do_parse` writes a folder of files for one page, and they are read back. Source: `mineru/cli/common.py` of
opendatalab/MinerU @ 79d6d8d7 (3.4.4). `MinerUParser` is what `mineru-kit parse` calls for a local page; here it keeps
its models. Source: `mineru/parser` of PyPI mineru 4.0.12 and the schema of docvortex 0.6.4;
docs/protocols/engines.md#mineru.
"""

from __future__ import annotations

import inspect
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

#: Options that versions before 3 have not; an unknown one would be passed on to a model.
_NEWER = ("image_analysis", "effort")
#: What a block of the content list holds its text in, by what it is.
_TEXT_KEYS = ("text", "table_body", "code_body", "content")
#: Blocks inside blocks inside spans; deeper is no page.
_DEEPEST = 20


class UnknownVersionError(Exception):
    """The installed version has none of the interfaces."""

    outcome = "usage"


def load(options: dict[str, Any]) -> tuple[Callable[[Any], dict[str, Any]], dict[str, str]]:
    """`method` for all; `tier` for version 4; `backend`, `effort`, `language`, `formulas`, `tables` for those before.

    `base_url` and `model` are of the model server. What makes the package load its models is a page of ours.
    """
    installed = version("mineru")
    major = installed.partition(".")[0]
    if major not in ("2", "3", "4"):
        raise UnknownVersionError(f"mineru {installed} has none of the interfaces that Loupe knows (2.x to 4.x)")
    # Version 4 reads ~/.mineru/config.yaml, which may name servers of others: it is given a file of ours. This process
    # starts in an empty folder.
    config = Path("mineru.yaml").absolute()
    config.write_text("{}\n", "utf-8")
    os.environ["MINERU_CONFIG"] = str(config)
    if major == "4" and os.environ.get("HF_HUB_OFFLINE"):
        # Its own word for "what is in the folder of models, and nothing from the network".
        os.environ["MINERU_MODEL_SOURCE"] = "local"
    parse, facts = (tiers if major == "4" else backends)(options)
    # Text that stands in a PDF needs no model.
    if major != "4" or (options["tier"], options["method"]) != ("flash", "txt"):
        parse(draw_page("warm-up.png"))

    def read(page: Any) -> dict[str, Any]:
        return parse(page.path)

    return read, facts


def backends(options: dict[str, Any]) -> tuple[Callable[[str], dict[str, Any]], dict[str, str]]:
    """The function of versions 2 and 3, and what run.json says of it."""
    from mineru.cli.common import do_parse, read_fn

    chosen = {
        "backend": options["backend"],
        "parse_method": options["method"],
        "formula_enable": options["formulas"],
        "table_enable": options["tables"],
        # The package adds /v1 itself.
        "server_url": options["base_url"].removesuffix("/v1") or None,
        "image_analysis": options["image_analysis"],
        "effort": options["effort"],
    }
    known = inspect.signature(do_parse).parameters
    chosen = {name: value for name, value in chosen.items() if name not in _NEWER or name in known}

    def parse(path: str) -> dict[str, Any]:
        # An image becomes a PDF of one page here.
        data = read_fn(Path(path))
        with tempfile.TemporaryDirectory() as folder:
            do_parse(
                folder,
                pdf_file_names=["page"],
                pdf_bytes_list=[data],
                p_lang_list=[options["language"]],
                f_draw_layout_bbox=False,
                f_draw_span_bbox=False,
                f_dump_md=True,
                f_dump_middle_json=False,
                f_dump_model_output=False,
                f_dump_orig_pdf=False,
                f_dump_content_list=True,
                **chosen,
            )
            return written(Path(folder))

    return parse, {"interface": "do_parse", "backend": options["backend"]}


def written(folder: Path) -> dict[str, Any]:
    """Return what `do_parse` left: OUT/page/METHOD/page.md and its content list. The way decides METHOD."""
    found = sorted(folder.glob("page/*/page.md"))
    if len(found) != 1:
        raise RuntimeError(f"mineru wrote {len(found)} Markdown files for one page")
    listed = found[0].with_name("page_content_list.json")
    regions = [
        {
            "label": "title" if block.get("text_level") else str(block.get("type", "")),
            "content": next(
                (block[key] for key in _TEXT_KEYS if isinstance(block.get(key), str)),
                "\n".join(map(str, block.get("list_items") or [])),
            ),
            "box": block.get("bbox"),
            "score": block.get("score"),
        }
        for block in (json.loads(listed.read_text("utf-8")) if listed.is_file() else [])
    ]
    return {"text": found[0].read_text("utf-8", "replace"), "regions": regions, "finish_reason": None}


def tiers(options: dict[str, Any]) -> tuple[Callable[[str], dict[str, Any]], dict[str, str]]:
    """The parser of version 4, and what run.json says of it. A server that nobody named is named as none.

    Otherwise a file of MinerU's own could name one, and documents could go to mineru.net.
    """
    from mineru.config import VlmConfig
    from mineru.parser import MinerUParser

    server = VlmConfig(server_url=options.get("base_url", ""), model=options.get("model", ""), api_key="")
    more = {key: options[key] for key in ("image_analysis",) if key in options}
    parser = MinerUParser(tier=options["tier"], parse_mode=options["method"], vlm_config=server, **more)

    def parse(path: str) -> dict[str, Any]:
        files = Files()
        parser.parse(path).save(files)
        pages = json.loads(files.texts["middle_json.json"]).get("pages", [])
        if len(pages) != 1:
            raise RuntimeError(f"mineru gave {len(pages)} pages for one")
        regions = [
            {
                "label": str(block.get("type", "")),
                "content": text_below(block),
                "box": block.get("bbox"),
                "score": block.get("score"),
            }
            for block in pages[0].get("blocks", [])
        ]
        return {"text": files.texts["markdown.md"], "regions": regions, "size": [1, 1], "finish_reason": None}

    return parse, {"interface": "MinerUParser", "tier": options["tier"]}


class Files:
    """The folder where the package saves a result. Saved, its Markdown names pictures; else it holds them, megabytes of
    base64.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def write_string(self, path: str, data: str) -> None:
        """A text of the result, by its name."""
        self.texts[path] = data

    def write(self, path: str, data: bytes) -> None:
        """A picture; nobody asks for it."""


def text_below(node: Any, depth: int = 0) -> str:
    """The text below a block: its content is a text, or spans, or further blocks."""
    if isinstance(node, str):
        return node
    if depth > _DEEPEST:
        return ""
    if isinstance(node, Mapping):
        return text_below(node.get("content", ""), depth + 1)
    if isinstance(node, list):
        blocks = any(isinstance(each, Mapping) and "bbox" in each for each in node)
        return ("\n" if blocks else "").join(text_below(each, depth + 1) for each in node)
    return ""


def draw_page(path: str) -> str:
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
