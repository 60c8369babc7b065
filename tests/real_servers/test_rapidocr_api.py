"""The profile `rapidocr-api` against the real rapidocr_api."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.real_servers.conftest import Start
from tests.support.command_line import loupe


@pytest.fixture(scope="module")
def url(start: Start, programs: Path) -> Iterator[str]:
    if not (programs / "rapidocr-api" / "ready").exists():
        pytest.skip("rapidocr-api: not installed by script/test-servers")
    with start("rapidocr-api", "rapidocr_api", "-ip", "127.0.0.1", "-p", "{port}") as address:
        yield address


def test_it_reads_the_sample_pages(url: str, tmp_path: Path) -> None:
    done = loupe(
        *("run", "sample_pages", "-e", "rapidocr-api", "--base-url", url, "--limit", "4", "--json"), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["failures"] == []
    text = (tmp_path / "runs/rapidocr-api/sample_pages/predictions").glob("*")
    assert all(len(file.read_text(encoding="utf-8")) > 100 for file in text)


def test_a_blank_page_is_empty_and_a_broken_one_is_the_error_of_its_page(url: str, tmp_path: Path) -> None:
    Image.new("RGB", (300, 200), "white").save(tmp_path / "blank.png")
    words = ("engine", "test", "rapidocr-api", "--base-url", url, "--json", "--image")
    done = loupe(*words, "blank.png", cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)["text"] == "", done.stderr
    (tmp_path / "ask.toml").write_text(
        f'kind = "http"\nbase_url = "{url}"\nsubmit = {{ url = "/ocr", multipart = {{ other = "{{page}}" }} }}\n'
        'answer = { text = "values(@)[].rec_txt" }\n',
        encoding="utf-8",
    )
    done = loupe("engine", "test", "ask.toml", "--image", "blank.png", cwd=tmp_path)
    assert done.returncode != 0 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr
