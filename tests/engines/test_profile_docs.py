"""Pages about profiles: the table in docs/engines, and a page for each, are made from the profiles."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from script.make_profile_docs import ENGINES, documents

from tests.house.test_docs import examples, what_is_wrong
from tests.support.command_line import needs_all_features

AGAIN = "run: python script/make_profile_docs.py"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return documents()


@needs_all_features()
def test_the_table_is_made_from_the_profiles(pages: dict[str, str]) -> None:
    assert (ENGINES / "profiles.md").read_text("utf-8") == pages["profiles.md"], AGAIN


def test_links_and_commands_of_a_page_are_right(pages: dict[str, str], tmp_path: Path) -> None:
    for name, text in pages.items():
        for target in re.findall(r"\]\(([^)\s#:]+)(?:#[\w-]+)?\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            place = os.path.normpath(f"{Path(name).parent}/{target}")
            assert place in pages or (ENGINES / place).is_file(), (name, target)
        (tmp_path / "page.md").write_text(text, "utf-8")
        assert [what_is_wrong(line) for line in examples(tmp_path / "page.md") if what_is_wrong(line)] == [], name


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
