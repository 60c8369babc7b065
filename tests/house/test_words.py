"""The language of pages and docstrings, as far as a machine can count it: openings, length, one word for one thing.

Ceilings only fall: whoever makes text better lowers them to the new count.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = ROOT / "docs/engines/profiles"
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if MADE not in path.parents)
#: docs/cli.md is made from `--help`; protocols follow the words of official programs.
PROSE = [path for path in PAGES if path.name != "cli.md" and path.parent.name != "protocols"]
#: Protocols of benchmarks, and those of anything else.
OTHER_RULES = {"README", "cdm", "embedding", "engines", "hf_hub_local", "model_selection", "sizing", "teds"}
FORBIDDEN = {
    r"\bdata sets?\b": "dataset",
    r"\btime-outs?\b": "timeout",
    r"\bsub-folders?\b": "subfolder",
    r"\bwhite space\b": "whitespace",
    r"\bproject that asked\b|\bdocument 00\d\b": "an unpublished source",
    r"\bsimply\b": "nothing",
}
MOST_LONG_SENTENCES = 75
MOST_OPENINGS = 260
#: An opening that says what a docstring is about instead of what the function does.
OPENING = re.compile(r"(What|Whether|How|Where|Why|Which)\b")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def running_text(path: Path) -> str:
    """The page without code, tables, headings and targets of links."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|<[^>]*>", "", text)
    return "\n".join(line for line in text.splitlines() if not line.startswith(("|", "#")))


def first_line(path: Path) -> str:
    """The first sentence below the title."""
    return path.read_text("utf-8").split("\n", 1)[1].strip().split("\n\n")[0].replace("\n", " ")


def test_a_page_opens_with_what_the_reader_gets() -> None:
    assert [name(path) for path in PAGES if re.match(r"This (page|section|document)\b", first_line(path))] == []


def test_no_two_pages_have_the_same_title() -> None:
    titles = Counter(path.read_text("utf-8").split("\n", 1)[0] for path in PAGES if path.parent.name != "protocols")
    assert [title for title, count in titles.items() if count > 1 or not title.startswith("# ")] == []


@pytest.mark.parametrize(
    "page",
    sorted(each for each in (ROOT / "docs/benchmarks").glob("*.md") if "-" not in each.stem),
    ids=lambda path: path.stem,
)
def test_the_page_of_a_benchmark_says_that_it_is_how_and_links_the_rules(page: Path) -> None:
    line = first_line(page)
    rules = re.findall(r"\]\(\.\./protocols/(\w+)\.md\)", line)
    assert line.startswith("How to run it. ")
    assert rules or "There is no protocol" in line
    for each in rules:
        assert f"](../benchmarks/{page.name})" in first_line(ROOT / f"docs/protocols/{each}.md")


def test_the_protocol_of_a_benchmark_says_that_it_is_the_rules_and_links_how() -> None:
    for path in (ROOT / "docs/protocols").glob("*.md"):
        if path.stem not in OTHER_RULES:
            line = first_line(path)
            assert re.match(r"The rules\. How to run (it|them): \[", line), name(path)
            for page in re.findall(r"\]\(\.\./benchmarks/([\w]+\.md)\)", line):
                assert f"](../protocols/{path.name})" in first_line(ROOT / "docs/benchmarks" / page)


def test_one_word_stands_for_one_thing() -> None:
    found = [
        f"{name(path)}: {match[0]!r}, better {better!r}"
        for path in PROSE
        for rule, better in FORBIDDEN.items()
        for match in re.finditer(rule, running_text(path), re.IGNORECASE)
    ]
    assert found == []


def test_sentences_over_35_words_become_fewer() -> None:
    sentences = [one for path in PROSE for one in re.split(r"(?<=[.!?:])\s+|\n\n+|\n- ", running_text(path))]
    assert sum(len(one.split()) > 35 for one in sentences) <= MOST_LONG_SENTENCES


def test_docstrings_that_open_with_a_question_word_become_fewer() -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    opened = 0
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                opened += bool(OPENING.match(text))
    assert opened <= MOST_OPENINGS
