"""Stands in for mineru 4.0.12: a parser and its result."""

from __future__ import annotations

import json
import os

from stand_in import look_at, note


class ParseResult:
    """A page as blocks; boxes are fractions of it."""

    def __init__(self, text):
        self._text = text

    def save(self, writer):
        """Markdown, JSON and a picture."""
        writer.write_string("markdown.md", f"# {self._text}\n\n![](images/a.jpg)\n")
        writer.write_string("middle_json.json", json.dumps(self._document()))
        writer.write("images/a.jpg", b"picture")

    def _document(self):
        spans = [
            {"type": "text", "content": "see "},
            {"type": "hyperlink", "content": [{"type": "text", "content": "this"}]},
        ]
        body = {"type": "table_body", "content": "<table></table>", "bbox": [0.1, 0.5, 0.9, 0.6]}
        caption = {"type": "table_caption", "content": [{"type": "text", "content": "T"}], "bbox": [0.1, 0.6, 0.9, 0.7]}
        blocks = [
            {
                "type": "doc_title",
                "index": 0,
                "bbox": [0.1, 0.05, 0.9, 0.1],
                "content": [{"type": "text", "content": self._text}],
            },
            {"type": "text", "index": 1, "bbox": [0.1, 0.2, 0.9, 0.4], "content": spans},
            {"type": "table", "index": 2, "bbox": [0.1, 0.5, 0.9, 0.7], "content": [body, caption]},
        ]
        return {"schema": "docvortex.middle", "pages": [{"page_idx": 0, "blocks": blocks}]}


class MinerUParser:
    """The parser."""

    def __init__(self, *, tier="standard", parse_mode="auto", image_analysis=True, vlm_config=None):
        steering = sorted(name for name in os.environ if name.startswith(("MINERU_LLM", "MINERU_MODEL_VLM")))
        note("open", tier=tier, parse_mode=parse_mode, server=vlm_config.server_url, steering=steering)

    def parse(self, path, *, page_range="", source_context=None):
        """Read a page."""
        note("parse", page=path, page_range=page_range)
        return ParseResult(f"{look_at(path)}{page_range and f', page {page_range}'}")
