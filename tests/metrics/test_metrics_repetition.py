"""The loop detector against the rule of docs/protocols/engines.md#repetition spelled out slowly."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loupe.metrics import find_loop
from loupe.metrics.repetition import _HashedText, _may_end_in_loop, _may_hold_run, _run, _tail

PROSE = (
    "The harbour office closed at noon on Friday. No refunds are given after 14 March 2021, and the committee that met "
    "twice a year attached its minutes below. Ice melts at 0 °C and boils at 100 °C, or so the children were told. "
)
#: Few enough that blocks of ten characters come again.
WORDS = ["a", "of", "and", "the", "item 7", "</td><td>", "|---|", "12.50", "          ", "remarkable", "."]


def slow_verdict(text: str) -> bool:
    """The rule, by comparing every unit at every place."""
    text = text.strip()
    n = len(text)
    for period in range(10, n // 10 + 1):
        same = 0
        for left, right in zip(text, text[period:], strict=False):
            same = same + 1 if left == right else 0
            if same >= 9 * period:
                return True
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) >= 10 and max(Counter(lines).values()) >= 0.8 * len(lines):
        return True
    for period in range(8, n // 5 + 1):
        for count in range(5, n // period + 1):
            if 2 * count * period > n and text.endswith(text[n - period :] * count):
                return True
    return False


# Units and counts near every threshold, with something before, between and after.
small = st.text(st.sampled_from("ab \n"), max_size=14)
loops = st.builds(
    lambda before, unit, count, middle, again, after: before + unit * count + middle + unit * again + after,
    small,
    small,
    st.integers(0, 13),
    small,
    st.integers(0, 13),
    small,
)


@given(loops | st.text(st.sampled_from("ab"), max_size=300))
@example("abcdefghij" * 10)
@example("abcdefghij" * 9 + "abcdefghi")
@example("abcdefgh" * 5)
@example("x" * 40 + "abcdefgh" * 5)
@example("x" * 39 + "abcdefgh" * 5)
@example("a line\n" * 8 + "other\nanother\n")
@example("a line\n" * 7 + "other\nanother\nthird\n")
def test_the_fast_verdict_is_the_slow_one(text: str) -> None:
    assert (find_loop(text) is not None) == slow_verdict(text)


@given(st.integers(1, 40), st.integers(0, 200), st.integers(0, 200))
def test_ten_units_in_a_row_are_found_wherever_they_stand(length: int, before: int, after: int) -> None:
    unit = PROSE[:length] + "|" * max(0, 10 - length)
    text = PROSE[:before] + unit * 10 + PROSE[:after]
    assert find_loop(text) is not None


@given(
    st.lists(st.sampled_from(WORDS), max_size=400).map(" ".join),
    st.integers(0, 2_000),
    st.integers(8, 120),
    st.integers(4, 11),
    st.integers(0, 12),
)
def test_a_look_at_some_places_never_hides_a_loop(text: str, at: int, length: int, count: int, more: int) -> None:
    unit = (text[::-1] + PROSE)[:length]
    for looped in (text, text[:at] + unit * count + unit[:more] + text[at:], text + unit * count + unit[:more]):
        hashed = _HashedText(looped.strip())
        assert _may_hold_run(hashed.text) or _run(hashed) is None
        if len(hashed.text) >= 40:
            assert _may_end_in_loop(hashed.text) or _tail(hashed) is None


def test_a_look_is_enough_for_ordinary_text() -> None:
    page = " ".join(f"word {number * number}" for number in range(200))
    assert not _may_hold_run(page)
    assert not _may_end_in_loop(page)


def test_ordinary_prose_and_tables_are_no_loops() -> None:
    table = "\n".join(f"| {row} | {row * 37 % 101} | {row * 91 % 89} items |" for row in range(60))
    assert find_loop(PROSE) is None
    assert find_loop(table) is None
    assert find_loop("") is None


def test_a_loop_cut_off_in_the_middle_of_its_unit_is_found() -> None:
    loop = find_loop("Heading. " + "the same again and " * 40 + "the sa")
    assert loop is not None
    assert loop.kind == "run"
    assert (len(loop.unit), loop.count) == (19, 40)


def test_a_long_unit_at_the_end_is_found() -> None:
    loop = find_loop(PROSE + (PROSE[::-1] + "!") * 5)
    assert loop is not None
    assert (loop.kind, len(loop.unit), loop.count) == ("tail", len(PROSE) + 1, 5)


def test_one_line_among_few_others_is_found() -> None:
    text = "\n".join("  n/a " if row % 10 else f"row {row}" for row in range(40))
    loop = find_loop(text)
    assert loop is not None
    assert (loop.kind, loop.unit, loop.count) == ("line", "n/a", 36)


@pytest.mark.parametrize("unit", ["\ud800\ud801 lone", "\0\0\0\0\0\0\0\0\0\0", "𝄞𝄞 music 𝄞"])
def test_odd_characters_do_not_disturb(unit: str) -> None:
    assert find_loop(unit * 12) is not None
    assert find_loop(unit) is None


def test_a_megabyte_without_and_with_a_loop_gets_its_verdict() -> None:
    counting = " ".join(str(number * number) for number in range(100_000))
    assert len(counting) > 900_000
    assert find_loop(counting) is None
    assert find_loop(counting[:500_000] + " so it goes on " * 40_000) is not None
