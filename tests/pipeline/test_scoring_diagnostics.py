"""Diagnostics (docs/diagnostics.md): each flag goes up for what it names and stays down for what only looks like it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loupe.scoring.diagnostics import diagnose, insertion_rate
from loupe.scoring.scripts import _BLOCKS, script_mismatch, script_of
from loupe.types import Benchmark, Measure, Prediction, Sample, Score


def no_samples(root: Path) -> Iterator[Sample]:
    yield from ()


def no_scores(sample: Sample, prediction: Prediction) -> list[Score]:
    return []


BENCHMARK = Benchmark(
    title="none", version="1", task="text", measures=(Measure(name="m"),), load=no_samples, score=no_scores
)


def diagnostics(text: str, reference: str = "", *, image: Path | None = None, **facts: Any) -> dict[str, float]:
    sample = Sample(id="s", truth=reference, images=(image,) if image else ())
    return diagnose(BENCHMARK, sample, Prediction(sample="s", text=text, **facts), text)


@pytest.fixture
def pages(tmp_path: Path) -> dict[str, Path]:
    from PIL import Image, ImageDraw

    blank = Image.new("RGB", (400, 500), "white")
    printed = blank.copy()
    ImageDraw.Draw(printed).rectangle((60, 60, 300, 100), fill="black")
    paths = {"blank": tmp_path / "blank.png", "printed": tmp_path / "printed.png"}
    blank.save(paths["blank"])
    printed.save(paths["printed"])
    return paths


def test_a_good_answer_raises_no_flag() -> None:
    assert diagnostics("Good morning", "Good morning") == {
        "empty": 0.0,
        "truncated": 0.0,
        "loop": 0.0,
        "insertion_rate": 0.0,
        "script_mismatch": 0.0,
        "prediction_length": 12.0,
        "reference_length": 12.0,
    }


def test_a_failed_prediction_has_no_diagnostics() -> None:
    assert diagnostics("", "abc", outcome="timeout") == {}


def test_white_space_is_an_empty_answer() -> None:
    assert diagnostics(" \n", "abcdef")["empty"] == 1.0


def test_an_answer_cut_off_at_the_limit_is_truncated() -> None:
    assert diagnostics("a", "b", outcome="truncated")["truncated"] == 1.0
    assert diagnostics("a", "b", outcome="repeated", finish_reason="length")["truncated"] == 1.0


def test_a_repetition_is_a_loop() -> None:
    assert diagnostics("and so on, " * 50, "text")["loop"] == 1.0


def test_text_on_a_blank_page_is_noticed(pages: dict[str, Path]) -> None:
    assert diagnostics("I see a cat.", image=pages["blank"])["text_on_blank"] == 1.0
    assert diagnostics("", image=pages["blank"])["text_on_blank"] == 0.0


def test_a_page_with_ink_or_with_ground_truth_is_not_a_blank_page(pages: dict[str, Path], tmp_path: Path) -> None:
    assert "text_on_blank" not in diagnostics("text", image=pages["printed"])
    assert "text_on_blank" not in diagnostics("text", "text", image=pages["blank"])
    assert "text_on_blank" not in diagnostics("text", image=tmp_path / "missing.png")


def test_insertions_are_what_nothing_in_the_reference_stands_for() -> None:
    assert insertion_rate("abcXYZ", "abc") == pytest.approx(0.5)
    assert insertion_rate("axc", "abc") == 0.0
    assert insertion_rate("ab", "abc") == 0.0
    assert insertion_rate("two\n\nlines of  text ", "two lines of text") == 0.0, "line breaks are no invented text"


def test_without_a_reference_there_is_no_insertion_rate() -> None:
    assert "insertion_rate" not in diagnostics("text", "")


def test_a_huge_answer_is_bounded_in_time_and_from_below() -> None:
    start = time.process_time()
    found = diagnostics("word " * 200_000 + "end", "word " * 20_000)
    assert time.process_time() - start < 5
    assert found["insertion_rate"] == pytest.approx(0.9, abs=0.001)


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("Hello world", "Привет мир", True),
        ("Привет мир", "Привет мир", False),
        ("你好世界", "Hello world", True),
        ("ひらがなとかんじ漢字", "漢字漢字漢字漢字ひら", False),
        ("<table><tr><td>你好世界</td></tr></table>", "你好世界", False),
        (r"\mathrm \frac привет", "привет", False),
        ("123 456", "Привет", None),
        ("", "", None),
    ],
)
def test_the_script_of_an_answer_is_compared_with_the_page(
    prediction: str, reference: str, expected: bool | None
) -> None:
    assert script_mismatch(prediction, reference) is expected


def test_the_blocks_are_in_order_and_do_not_overlap() -> None:
    edges = [edge for start, end, _ in _BLOCKS for edge in (start, end)]
    assert edges == sorted(edges)


def test_the_table_of_scripts_agrees_with_the_names_in_unicode() -> None:
    import unicodedata

    same = {"cjk": "han", "katakana": "kana", "hiragana": "kana", "oriya": "odia"}
    known = {script for _, _, script in _BLOCKS}
    for char in filter(str.isalpha, map(chr, range(0x30000))):
        first = unicodedata.name(char, "").split(" ")[0].split("-")[0].lower()
        name, script = same.get(first, first), script_of(char)
        assert script in (name, "") or name not in known, f"U+{ord(char):04X}"


@pytest.mark.parametrize(
    ("char", "script"),
    list(
        zip(
            "aßЖαא한カ漢नไع",
            (
                [
                    "latin",
                    "latin",
                    "cyrillic",
                    "greek",
                    "hebrew",
                    "hangul",
                    "kana",
                    "han",
                    "devanagari",
                    "thai",
                    "arabic",
                ]
            ),
            strict=True,
        )
    ),
)
def test_letters_of_the_world_have_their_script(char: str, script: str) -> None:
    assert script_of(char) == script
