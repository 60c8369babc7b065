"""docs/engines/profiles.md is made from the profiles."""

from __future__ import annotations

from pathlib import Path

from script.make_profile_docs import DOCS, document


def test_the_page_of_all_profiles_is_that_of_the_profiles() -> None:
    assert Path(DOCS).read_text(encoding="utf-8") == document(), "run: python script/make_profile_docs.py"
