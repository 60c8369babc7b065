"""What single models write instead of a page: all cases of their own software, properties, and hostile answers.

Oracles: deepseek_post, dots_md, paddle_otsl, paddle_truncate; equal to the letter, no exceptions.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.engines.adapters.marks import deepseek_grounding
from loupe.engines.adapters.model_json import dots_layout, layout_markdown
from loupe.engines.adapters.paddle import otsl_to_html, paddle_math, paddle_repeats, paddle_tables, truncate_repetition
from loupe.engines.adapters.steps import STEPS
from loupe.metrics import vision_tokens
from tests.support.shared import cases


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", cases("oracles/engines/deepseek_post.jsonl"), ids=name)
def test_deepseek_answers_become_the_official_markdown(case: dict[str, Any]) -> None:
    assert deepseek_grounding(case["input"]["raw"]) == case["expected"]["markdown"]


@pytest.mark.parametrize("case", cases("oracles/engines/paddle_otsl.jsonl"), ids=name)
def test_otsl_becomes_the_official_table(case: dict[str, Any]) -> None:
    assert otsl_to_html(case["input"]["otsl"]) == case["expected"]["html"]


@pytest.mark.parametrize("case", cases("oracles/engines/paddle_truncate.jsonl"), ids=name)
def test_loops_are_cut_off_where_paddlex_cuts_them(case: dict[str, Any]) -> None:
    assert truncate_repetition(case["input"]["content"], case["input"]["min_count"]) == case["expected"]["result"]


@pytest.mark.parametrize("case", cases("oracles/engines/dots_md.jsonl"), ids=name)
def test_dots_areas_become_the_official_markdown(case: dict[str, Any]) -> None:
    areas, picture = case["input"]["cells"], case["input"]["picture_token"]
    assert layout_markdown(areas, picture=picture, margins=True) == case["expected"]["markdown"]
    without = case["expected"]["markdown_no_header_footer"]
    assert layout_markdown(areas, picture=picture) == without
    assert dots_layout(json.dumps(areas)) == without.replace(picture, "![]()")


@pytest.mark.parametrize("case", cases("oracles/engines/deepseek_tokens.jsonl"), ids=name)
def test_a_page_takes_as_many_places_in_the_prompt_as_in_the_vllm_script(case: dict[str, Any]) -> None:
    given = case["input"]
    found = vision_tokens(given["width"], given["height"], given["mode"], max_tiles=given["max_crops"])
    assert list(found.tiles) == case["expected"]["tiles"]
    assert found.sequence == case["expected"]["sequence_image_tokens"]


@pytest.mark.parametrize(
    ("step", "text", "expected"),
    [
        (deepseek_grounding, "a\n\n\n\nb <center>", "a\n\n\n\nb <center>"),
        (deepseek_grounding, "\\[ x \\quad (1) \\] and \\quad (2)", "\\[x\\] and \\quad (2)"),
        (deepseek_grounding, "<|ref|>a<|/ref|><|det|>[[1]]", "<|ref|>a<|/ref|><|det|>[[1]]"),
        # The block's own empty lines are gone by the time its round comes, so it is not found any more.
        (
            deepseek_grounding,
            "<|ref|>a<|/ref|><|det|>[]<|/det|><|ref|>b\n\n\n<|/ref|><|det|>[]<|/det|>",
            "<|ref|>b\n\n<|/ref|><|det|>[]<|/det|>",
        ),
        (paddle_tables, "no table", "no table"),
        (paddle_tables, "<nl>", "<nl>"),
        (otsl_to_html, "<fcel><fcel>a<nl>", "<table><tr><td>&lt;fcel&gt;</td><td>a</td></tr></table>"),
        (otsl_to_html, "before <fcel>a<fcel>b", "<table><tr><td>&lt;fcel&gt;</td><td>&lt;nl&gt;</td></tr></table>"),
        (otsl_to_html, "<fcel>a<lcel><nl><xcel><xcel><nl>", None),
        (paddle_math, "costs $5", "costs $5"),
        (paddle_math, "\\(a\\) costs $5", " $ a $ costs 5"),
        (paddle_math, "\\[\\[a\\]\\]", " $$ a $$ "),
        (paddle_repeats, "<fcel>ab<nl>" * 20, "<fcel>ab<nl>" * 20),
        (paddle_repeats, "ab" * 30, "ab"),
        (dots_layout, "plain", "plain"),
        (dots_layout, '[{"bbox": [1, 2, 3, 4], "category": "Text", "text": "a"}, {"bbox": [1, 2,', "a"),
        (dots_layout, '[{"bbox": [1, 2, 3], "category": "Text", "text": "a"}]', "a"),
    ],
)
def test_a_step_gives_exactly_this(step: Callable[[str], str], text: str, expected: str | None) -> None:
    if expected is None:
        expected = '<table><tr><td rowspan="2" colspan="2">a</td></tr><tr></tr></table>'
    assert step(text) == expected


def test_items_that_a_broken_answer_repeats_are_kept_once() -> None:
    same = [{"bbox": [number, 0, 9, 9], "category": "Text", "text": "again"} for number in range(5)]
    box = [{"bbox": [7, 7, 9, 9], "category": "Text", "text": text} for text in ("first", "second")]
    assert dots_layout(json.dumps(same + box)[:-1]) == "again\n\nfirst"
    assert dots_layout(json.dumps(same[:4])[:-1]) == "\n\n".join(["again"] * 4)


TAGS = ["<fcel>", "<ecel>", "<lcel>", "<ucel>", "<xcel>", "<nl>"]
otsl = st.lists(st.sampled_from([*TAGS, "a", " ", "\n", "<b>", "&"]), max_size=24).map("".join)


@given(otsl)
def test_every_table_is_well_formed_and_escapes_its_texts(text: str) -> None:
    found = otsl_to_html(text)
    assert re.fullmatch(
        r"(<table>(<tr>(<td( rowspan=\"\d+\")?( colspan=\"\d+\")?>[^<>]*</td>)*</tr>)+</table>)?", found
    )


@given(st.lists(st.sampled_from(["a", "b", "ab", "\n", "word "]), max_size=30).map("".join), st.integers(1, 60))
def test_what_is_left_of_a_loop_is_a_part_of_the_text(text: str, times: int) -> None:
    found = truncate_repetition(text + "unit one " * times, 50)
    assert found in text + "unit one " * times


def slow_repetition(text: str) -> str:
    """The two rules for one line, written down plainly."""
    line = text.strip()
    for length in range(len(line) // 5, 7, -1) if len(line) > 100 else ():
        unit = line[-length:]
        if line.endswith(unit * 5):
            rest = line
            while rest.endswith(unit):
                rest = rest[:-length]
            if len(line) - len(rest) > len(line) / 2:
                return rest
            break
    for length in range(1, len(line) // 10 + 1):
        if line[:length] * (len(line) // length) == line and len(line) > 10:
            return line[:length]
    return text


@given(
    st.text("ab", max_size=60), st.text("ab", min_size=1, max_size=14), st.integers(1, 14), st.text("ab", max_size=3)
)
def test_repetition_of_one_line_equals_the_rule_written_plainly(before: str, unit: str, times: int, after: str) -> None:
    text = before + unit * times + after
    assert truncate_repetition(text, 50) == (slow_repetition(text) if len(text) >= 50 else text)


MEGABYTE = 1_000_000
HOSTILE = {
    "open blocks": "<|ref|>" * (MEGABYTE // 7),
    "blocks": "<|ref|>a<|/ref|><|det|>[[1,2,3,4]]<|/det|>\n\n\n\n" * (MEGABYTE // 45),
    "different blocks": "".join(f"<|ref|>{n}<|/ref|><|det|>[[{n}]]<|/det|>\n" for n in range(25_000)),
    "open formulas": "\\[ \\quad (" * (MEGABYTE // 10),
    "numbers in a formula": "\\[" + "\\quad (" * (MEGABYTE // 8) + "\\]",
    "rows of one and one wide row": "<fcel>a<nl>" * 45_000 + "<fcel>a" * 70_000,
    "spans over spans": ("<fcel>a" + "<xcel>" * 400 + "<nl>" + "<xcel>" * 401 + "<nl>") * 200,
    "one letter": "a" * MEGABYTE,
    "one letter, then another": "a" * (MEGABYTE // 2) + "b" + "a" * (MEGABYTE // 2 - 1),
    "dollars": "\\(" + "$" * MEGABYTE + "\\)",
    "areas": '[{"bbox": [1, 2, 3, 4], "category": "Text", "text": "' + '{"bbox": ' * (MEGABYTE // 9),
    "deep lists": '[{"bbox": ' + "[" * MEGABYTE,
    "packages": json.dumps([{"bbox": [1, 2, 3, 4], "category": "Formula", "text": "\\usepackage{" * 80_000}]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_megabyte_takes_little_time(name: str) -> None:
    for step in ("deepseek_grounding", "dots_layout", "paddle_repeats", "paddle_math", "paddle_tables"):
        began = time.process_time()
        STEPS[step](HOSTILE[name])
        assert time.process_time() - began < 2.0, step
