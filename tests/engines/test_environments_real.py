"""Two small real packages in environments of their own: pdfplumber, and Amazon's SDK against a server on this machine.

They come from the package index, once, through uv's own cache; without it these tests are skipped. The large ones are
tried by `script/test_engines.py`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from loupe.engines.environment import Settings, open_engine
from loupe.engines.environments.making import make, uv_command
from loupe.engines.registry import load_profile
from loupe.errors import EngineError, EngineUnavailableError, LoupeError, RejectedError, TransientEngineError
from loupe.types import Output, PageSource, PdfPage, Request
from tests.support.cloud_services import cloud_service, textract_blocks

SAMPLES = Path(__file__).parents[2] / "src" / "loupe" / "benchmarks" / "sample_pages_data"


@pytest.fixture(scope="module", autouse=True)
def real_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Environments in a folder of the tests; uv keeps the cache that it has."""
    with pytest.MonkeyPatch.context() as patch:
        cache = subprocess.run(
            [*uv_command(), "cache", "dir"], capture_output=True, text=True, check=True
        ).stdout.strip()
        patch.setenv("UV_CACHE_DIR", cache)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("AWS_ACCESS_KEY_ID", "made-up")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
        patch.delenv("AWS_PROFILE", raising=False)
        yield


def ready(name: str, **overrides: object) -> Settings:
    """The profile, installed; the test is skipped where the index cannot be reached."""
    profile = load_profile(name, overrides)[1]
    assert isinstance(profile, Settings)
    try:
        make(profile)
    except LoupeError as error:
        if "check the network" in error.hint:
            pytest.skip(f"the package index cannot be reached: {error.message[-120:]}")
        raise
    return profile


def ask(profile: Settings, *pages: PageSource) -> list[Output | EngineError]:
    """What the engine gives for each page."""

    async def run() -> list[Output | EngineError]:
        found: list[Output | EngineError] = []
        async with open_engine(profile) as engine:
            for page in pages:
                try:
                    found.append(await engine.predict(Request(id="p", images=(page,))))
                except EngineError as error:
                    found.append(error)
        return found

    return asyncio.run(run())


def test_pdfplumber_reads_pages_with_text_and_rejects_images() -> None:
    second, image = ask(ready("pdfplumber"), PdfPage(SAMPLES / "handbook.pdf", 2), SAMPLES / "prose.png")
    assert isinstance(second, Output) and len(second.text) > 200
    assert isinstance(image, RejectedError)


def test_textract_through_amazons_sdk() -> None:
    page = SAMPLES / "receipt.jpg"
    with cloud_service({"Blocks": textract_blocks()}) as service:
        options = {"region": "eu-central-1", "features": ["LAYOUT", "TABLES"], "endpoint": service.url}
        profile = ready("textract-layout", options=options)
        assert profile.services == profile.hosts == ()
        names = ("ThrottlingException", "BadDocumentException", "AccessDeniedException")
        service.next = [(400, {"__type": name, "message": "said so"}) for name in names]
        service.next.append((500, {"__type": "InternalServerError", "message": "said so"}))
        throttled, bad, denied, broken, read = ask(profile, *[page] * 5)
        assert isinstance(throttled, TransientEngineError) and throttled.rate
        assert isinstance(bad, RejectedError) and bad.message == "BadDocumentException: said so"
        assert isinstance(denied, EngineUnavailableError)
        assert isinstance(broken, TransientEngineError) and not broken.rate
        assert isinstance(read, Output)
        assert read.text == (
            "# Annual Report\n\n- one\n\n"
            '<table><tr><th colspan="2">Year</th></tr><tr><td>1 &amp; 2</td><td>2024</td></tr></table>'
        )
        # One request a page: the SDK repeats nothing by itself.
        assert [path for path, _, _ in service.asked] == ["/"] * 5
        assert set(service.pages) == {page.read_bytes()}
        _, headers, _ = service.asked[0]
        assert headers["X-Amz-Target"] == "Textract.AnalyzeDocument" and "made-up/" in headers["Authorization"]

        lines = load_profile("textract-text", {"options": {**options, "features": []}})[1]
        assert isinstance(lines, Settings)
        (text,) = ask(lines, page)
        assert isinstance(text, Output) and text.text == "Annual\nReport\none"


def test_where_pages_go() -> None:
    profile = load_profile("textract-text")[1]
    assert profile.services == ("textract.us-east-1.amazonaws.com",)
    assert load_profile("documentai")[1].hosts == ("us-documentai.googleapis.com",)
    surya = load_profile("surya", {"options": {"server": "http://gpu.example:8000/v1"}})[1]
    assert surya.services == () and surya.hosts == ("gpu.example",)
    assert "AWS_SECRET_ACCESS_KEY" in str(profile.stored()) and "made-up" not in str(profile.stored())
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == "made-up"
