"""The difference of two texts, as the browser computes it: exact against the Indel distance, bounded for huge texts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

import loupe.report
from loupe.metrics.edit import indel_distance
from tests.support.report_browser import chromium

pytestmark = pytest.mark.browser
SCRIPTS = [Path(loupe.report.__file__).parent / "static" / name for name in ("diff.js", "moved.js")]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium() as browser:
        found = browser.new_page()
        for script in SCRIPTS:
            found.add_script_tag(path=script)
        yield found


def difference(page: Page, prediction: str, reference: str, unit: str = "characters") -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("texts => difference(...texts)", [prediction, reference, unit])
    return found


def test_characters_changed_are_as_few_as_possible(page: Page) -> None:
    dice = random.Random(1)
    pairs = [["".join(dice.choices("abc 漢😀", k=dice.randint(0, 40))) for _ in range(2)] for _ in range(400)]
    found = page.evaluate("pairs => pairs.map(([a, b]) => difference(a, b, 'characters', 60000).counts)", pairs)
    assert [counts["missing"] + counts["extra"] for counts in found] == [indel_distance(*pair) for pair in pairs]


@pytest.mark.parametrize("unit", ["words", "characters"])
def test_the_parts_make_up_both_texts(page: Page, unit: str) -> None:
    dice = random.Random(2)
    words = ["the", "ferry", "clock", "钟", "船", "1931,", "x\n", "  "]
    for _ in range(60):
        prediction, reference = (" ".join(dice.choices(words, k=dice.randint(0, 30))) for _ in range(2))
        segments = difference(page, prediction, reference, unit)["segments"]
        assert "".join(text for kind, text in segments if kind != "missing") == prediction
        rebuilt = "".join(text for kind, text in segments if kind != "extra")
        assert (rebuilt if unit == "characters" else rebuilt.split()) == (
            reference if unit == "characters" else reference.split()
        )


def test_words_differ_as_words_and_chinese_by_character(page: Page) -> None:
    assert difference(page, "the cat sat", "the dog sat", "words")["segments"] == [
        ["same", "the "],
        ["missing", "dog"],
        ["extra", "cat"],
        ["same", " sat"],
    ]
    assert difference(page, "渡口的钟", "渡口的种", "words")["counts"] == {"same": 3, "missing": 1, "extra": 1}


def test_neighbouring_words_are_replaced_together(page: Page) -> None:
    kinds = [kind for kind, _ in difference(page, "a new pair b", "a old duo b", "words")["segments"]]
    assert kinds == ["same", "missing", "extra", "same"]


def test_a_space_and_a_line_end_are_the_same_between_words_only(page: Page) -> None:
    assert difference(page, "one\ntwo", "one two", "words")["counts"]["missing"] == 0
    assert difference(page, "one\ntwo", "one two", "characters")["counts"]["missing"] == 1


@pytest.mark.parametrize("unit", ["words", "characters"])
def test_a_megabyte_of_noise_is_compared_in_bounded_time(page: Page, unit: str) -> None:
    took = page.evaluate(
        """unit => {
            const noise = (seed) => Array.from({ length: 1e6 }, () => "ab c"[(seed = seed * 16807 % 2147483647) % 4]);
            const [a, b] = [noise(1).join(""), noise(99).join("")];
            const began = performance.now();
            const { coarse } = difference(a, b, unit);
            return [coarse, performance.now() - began];
        }""",
        unit,
    )
    assert took[0] is True
    assert took[1] < 8000


PARAGRAPHS = [
    f"Paragraph {word} tells of the {word} harbour and its clock." for word in ["first", "second", "third", "fourth"]
]


def moves(page: Page, prediction: str, reference: str, unit: str = "words") -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("texts => differenceWithMoves(...texts)", [prediction, reference, unit])
    return found


@pytest.mark.parametrize("between", ["\n\n", "\n"])
@pytest.mark.parametrize("unit", ["words", "characters"])
def test_blocks_in_another_order_are_moved_not_missing_and_extra(page: Page, between: str, unit: str) -> None:
    first, second, third, fourth = PARAGRAPHS
    found = moves(page, between.join((first, third, fourth, second)), between.join(PARAGRAPHS), unit)
    assert found["counts"]["missing"] == found["counts"]["extra"] == 0
    assert [text.strip() for kind, text, *_ in found["segments"] if kind == "moved"] == [second]


def test_a_moved_block_that_was_misread_shows_what_is_wrong_in_it(page: Page) -> None:
    first, second, third, fourth = PARAGRAPHS
    found = moves(page, "\n".join((first, third, fourth, second.replace("clock", "cl0ck"))), "\n".join(PARAGRAPHS))
    (moved,) = [segment for segment in found["segments"] if segment[0] == "moved"]
    assert [part for part in moved[2] if part[0] != "same"] == [["missing", "clock"], ["extra", "cl0ck"]]
    assert (found["counts"]["missing"], found["counts"]["extra"]) == (1, 1)


def test_the_parts_with_moved_ones_make_up_the_prediction(page: Page) -> None:
    dice = random.Random(3)
    for _ in range(80):
        reference = dice.choices([*PARAGRAPHS, "A short one.", "x", ""], k=dice.randint(0, 7))
        prediction = dice.sample(reference, k=dice.randint(0, len(reference)))
        texts = [dice.choice(["\n", "\n\n"]).join(lines) for lines in (prediction, reference)]
        segments = moves(page, *texts, dice.choice(["words", "characters"]))["segments"]
        assert "".join(text for kind, text, *_ in segments if kind != "missing") == texts[0]


def test_texts_in_the_same_order_have_nothing_moved(page: Page) -> None:
    text = "\n\n".join(PARAGRAPHS)
    misread = text.replace("clock", "cl0ck")
    assert moves(page, misread, text) == difference(page, misread, text, "words")
