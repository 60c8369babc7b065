"""A class name means one thing in all stylesheets that a page loads, so that no rule hits another part of the page."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from loupe import web
from loupe.data.hub.katex import katex_folder
from loupe.report import html

REPORT, WEB = Path(html.__file__).parent / "static", Path(web.__file__).parent
SHARED = [REPORT / name for name in ("report.css", "match.css", "facts.css")]
PAGES = {
    "report": SHARED,
    "view": [*SHARED, WEB / "view/static/view.css"],
    "review": [REPORT / "report.css", WEB / "review/static/review.css"],
}
#: The same part of the page, fitted to another page: the bar at the top, and the grid of samples.
REFITTED = {"bar", "brand", "icon", "cards"}
#: What a table of any kind is on a telephone.
COMBINED = {"stack"}
#: A rule of nothing but these lays nothing out: `failed` may be the colour of a word and of a box.
COLOURS = re.compile(r"(--[\w-]+|color|fill|background|stroke|stroke-[\w-]+|opacity)\s*:")
PSEUDO = re.compile(r"::?[\w-]+(\((?:[^()]|\([^()]*\))*\))?")


def rules(text: str) -> Iterator[tuple[str, bool]]:
    """Every selector, and whether its rule lays something out."""
    for selectors, body in re.findall(r"([^{};]+)\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
        lays_out = any(line.strip() and not COLOURS.match(line.strip()) for line in body.split(";"))
        for one in re.split(r",(?![^(]*\))", selectors):
            yield one.strip(), lays_out


def test_rules_of_colours_and_of_layout_are_told_apart() -> None:
    assert list(rules(".a:is(.b, .c), td { --x: 1; color: red } .d { /* } */ fill: red; width: 1px }")) == [
        (".a:is(.b, .c)", False), ("td", False), (".d", True),
    ]  # fmt: skip


@pytest.mark.parametrize("loaded", PAGES)
def test_a_class_has_rules_of_its_own_in_one_stylesheet_and_beside_no_other_such_class(loaded: str) -> None:
    alone: dict[str, set[str]] = defaultdict(set)
    together: set[tuple[str, ...]] = set()
    for sheet in PAGES[loaded]:
        for selector, lays_out in rules(sheet.read_text(encoding="utf-8")):
            parts = PSEUDO.sub("", selector).replace(">", " ").split()
            if lays_out and len(parts) == 1 and re.fullmatch(r"\.[\w-]+", parts[0]):
                alone[parts[0][1:]].add(sheet.name)
            together |= {tuple(re.findall(r"\.([\w-]+)", part)) for part in parts}
    assert len(alone) > 80
    assert {name: sheets for name, sheets in alone.items() if len(sheets) > 1 and name not in REFITTED} == {}
    both = [names for names in together if len((alone.keys() & set(names)) - COMBINED) > 1]
    assert both == []


def test_the_review_has_no_class_of_katex() -> None:
    file = katex_folder() / "katex.min.css"
    if not file.exists():
        pytest.skip("KaTeX is not here: loupe setup katex")
    theirs = set(re.findall(r"\.([A-Za-z][\w-]*)", file.read_text(encoding="utf-8")))
    ours = {
        name
        for sheet in PAGES["review"]
        for selector, _ in rules(sheet.read_text(encoding="utf-8"))
        for name in re.findall(r"^\.([\w-]+)$", PSEUDO.sub("", selector))
    }
    assert len(theirs) > 50 and theirs & ours == set()
