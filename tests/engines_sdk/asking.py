"""Environments of engines with stand-ins for vendors' packages in them, and engines asked through them."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loupe.engines.environments.places import LOCKED, LOCKS, RECORD, Record, Settings, wanted
from loupe.engines.registry import engine_module, load_profile
from loupe.errors import LoupeError
from loupe.typed import encode_json
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
    """Environments that look like those of `loupe engine install`, with a stand-in each, and what it noted."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._notes = folder / "notes.jsonl"
        self._cache = str(folder / "cache")
        patch.setenv("XDG_CACHE_HOME", self._cache)
        patch.setenv("OMP_STAND_IN_NOTES", str(self._notes))
        patch.delenv("OMP_STAND_IN", raising=False)

    def put(self, name: str, engine: str, **versions: str) -> dict[str, str]:
        """Make the environment of an engine with a stand-in and what package metadata would say.

        Returns the environment of a command that finds it.
        """
        profile = load_profile(engine)[1]
        assert isinstance(profile, Settings)
        folder = wanted(profile).folder
        packages = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        shutil.rmtree(folder, ignore_errors=True)
        packages.mkdir(parents=True)
        (folder / "bin").mkdir()
        base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
        (folder / "bin" / "python").symlink_to(base)
        (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
        # Pillow, which stand-ins read pages with, is that of the tests.
        paths = [str(STAND_INS / name), str(STAND_INS), sysconfig.get_path("purelib")]
        (packages / "stand_in.pth").write_text("\n".join(paths) + "\n")
        for package, version in (profile.pins | versions).items():
            information = packages / f"{package.replace('-', '_')}-{version}.dist-info"
            information.mkdir()
            (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        shutil.copy(LOCKS / f"{profile.environment}.txt", folder / LOCKED)
        record = Record(environment=profile.environment, python="3", lock="x", size=1, seconds=1.0)
        (folder / RECORD).write_bytes(encode_json(record))
        return {"XDG_CACHE_HOME": self._cache}

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
