"""Stand-ins for vendors' packages on the path, and engines asked through them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loupe.engines.registry import engine_module, load_profile
from loupe.errors import LoupeError
from loupe.types import Output, PdfPage, Request

STAND_INS = Path(__file__).parents[1] / "stand_ins"
MODELS = {"/v1/models": {"object": "list", "data": [{"id": "glm-ocr", "object": "model"}]}}
#: Variables with which the packages could be talked into asking somebody else.
ASTRAY = {
    "ZHIPU_API_KEY": "k",
    "GLMOCR_MODE": "maas",
    "GLMOCR_OCR_API_URL": "http://203.0.113.7/v1/chat/completions",
    "MINERU_LLM_AIDED_API_KEY": "k",
    "MINERU_MODEL_VLM_SERVER_URL": "http://203.0.113.7",
    "MINERU_CONFIG": "/nowhere/config.yaml",
}


class StandIn:
    """One stand-in on the path of this process and its children, and what it noted."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._patch = folder, patch
        self._notes = folder / "notes.jsonl"
        patch.setenv("OMP_STAND_IN_NOTES", str(self._notes))
        patch.delenv("OMP_STAND_IN", raising=False)

    def put(self, name: str, **versions: str) -> dict[str, str]:
        """Put a stand-in there, with what package metadata would say; returns the environment of a command with it."""
        for package, version in versions.items():
            information = self._folder / f"{package}-{version}.dist-info"
            information.mkdir()
            (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        paths = [str(STAND_INS / name), str(STAND_INS), str(self._folder)]
        for path in reversed(paths):
            self._patch.syspath_prepend(path)
        return {"PYTHONPATH": os.pathsep.join(paths)}

    def notes(self, call: str) -> list[dict[str, Any]]:
        """What was noted of one call."""
        lines = self._notes.read_text(encoding="utf-8").splitlines() if self._notes.exists() else []
        return [note for note in map(json.loads, lines) if note["call"] == call]


def blank_page(path: Path) -> Path:
    Image.new("RGB", (200, 100), "white").save(path)
    return path


def ask(name: str, *pages: Path | PdfPage, **settings: Any) -> list[Output | BaseException]:
    """Answers of an engine, or errors, page after page."""

    async def run() -> list[Output | BaseException]:
        _, profile = load_profile(name, settings)
        found: list[Output | BaseException] = []
        async with engine_module(profile.kind).open_engine(profile) as engine:
            for number, source in enumerate(pages):
                try:
                    found.append(await engine.predict(Request(id=f"p{number}", images=(source,), prompt="Free OCR.")))
                except LoupeError as error:
                    found.append(error)
        return found

    return asyncio.run(run())


def answer(name: str, source: Path | PdfPage, **settings: Any) -> Output:
    (found,) = ask(name, source, **settings)
    if isinstance(found, BaseException):
        raise found
    return found
