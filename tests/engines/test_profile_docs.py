"""docs/engines/profiles.md and the page of each profile are made from the profiles."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from script.make_profile_docs import ENGINES, documents, stale

AGAIN = "run: python script/make_profile_docs.py"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return documents()


def test_every_page_is_that_of_its_profile(pages: dict[str, str]) -> None:
    files = {name: ENGINES / name for name in pages}
    assert [
        name for name, file in files.items() if not file.is_file() or file.read_text("utf-8") != pages[name]
    ] == [], AGAIN
    assert stale(pages) == [], AGAIN


def test_the_table_links_every_page_once_and_no_folder_is_crowded(pages: dict[str, str]) -> None:
    profiles = [name for name in pages if name != "profiles.md"]
    assert [name for name in profiles if pages["profiles.md"].count(f"]({name})") != 1] == []
    assert max(Counter(Path(name).parent for name in profiles).values()) <= 30


def test_a_page_says_how_to_get_it_its_settings_sources_and_what_is_unproven(pages: dict[str, str]) -> None:
    docling, mistral = pages["profiles/packages/docling.md"], pages["profiles/services/mistral-ocr.md"]
    assert "\nloupe engine install docling --weights\n" in docling and "| licence | MIT" in docling
    assert "\n## Unproven\n- never run with its models" in docling and "\nocr = true\n" in docling
    assert "\nexport MISTRAL_API_KEY=…\n" in mistral and "| sends pages to | api.mistral.ai |" in mistral
    hunyuan = pages["profiles/models/hunyuan-ocr@vendor.md"]
    assert "\n# starts vllm serve tencent/HunyuanOCR " in hunyuan and "\ntop_k = 1\n" in hunyuan
    assert all("\n## Get it\n" in page and "\n## Settings\n" in page for name, page in pages.items() if "/" in name)
