"""Output adapters (protocol: docs/adapters.md): what each step takes away, what it leaves, and what it costs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.engines.adapters.steps import STEPS, apply_adapters, check_adapters
from loupe.errors import ProfileError

MARKS = "<think> </think> ``` ```markdown ```md ```python ```` </s> <s> <|im_end|> <｜end▁of▁sentence｜> word x ` 漢字"
PIECES = st.sampled_from([*MARKS.split(), "\n", "\r\n", "\r", " ", "\ufeff"])
texts = st.lists(PIECES, max_size=14).map("".join)


@pytest.mark.parametrize(
    ("step", "text", "expected"),
    [
        ("newlines", "\ufeffa\r\nb\r\r\nc\rd\r", "a\nb\nc\rd\r"),
        ("newlines", "a\ufeffb", "a\ufeffb"),
        ("think", "<think>2 + 2</think>\n4", "\n4"),
        ("think", "a<think>b</think>c<think>d</think>e", "ace"),
        ("think", "<think>never ends", ""),
        ("think", " \n<think>never ends", " \n"),
        ("think", "a page that says <think> once", "a page that says <think> once"),
        ("think", "so the answer is 4.</think>\n4", "\n4"),
        ("think", "<think>a<think>b</think>c</think>d", "d"),
        ("end_tokens", "text<|im_end|>\n<|endoftext|>", "text\n"),
        ("end_tokens", "text<｜end▁of▁sentence｜>", "text"),
        ("end_tokens", "text</s>\n</s> ", "text"),
        ("end_tokens", "was <s>10</s>", "was <s>10</s>"),
        ("end_tokens", "was <s>10</s></s>", "was <s>10</s>"),
        ("end_tokens", "a</s>b", "a</s>b"),
        ("unfence", "```markdown\n# A\n```", "# A"),
        ("unfence", "\n```JSON \n{}\n```\n\n", "{}"),
        ("unfence", "```\nplain\n```", "plain"),
        ("unfence", "````md\n```\ncode\n```\n````", "```\ncode\n```"),
        ("unfence", "```markdown\n# A\ncut off he", "# A\ncut off he"),
        ("unfence", "```markdown\n# A\n```python\nx = 1\n", "# A\n```python\nx = 1"),
        ("unfence", "```markdown\n# A\n```python\nx\n```\nb\n```", "# A\n```python\nx\n```\nb"),
        ("unfence", "```markdown\n# A\n```python\nx\n```", "# A\n```python\nx\n```"),
        ("unfence", "```markdown\n# A\n```\ncode\n```\nb\n```", "# A\n```\ncode\n```\nb"),
        ("unfence", '```json\n{"a": 1}```', '{"a": 1}'),
        ("unfence", "```markdown\nsee `x` and ```y```", "see `x` and ```y```"),
        ("unfence", "```markdown", ""),
        ("front_matter", "---\nprimary_language: en\nis_table: false\n---\n\n# A", "# A"),
        ("front_matter", "\n--- \ntitle: A\nauthors:\n- one\n  two\n# by hand\n\n...\nB\n---\nC", "B\n---\nC"),
        ("front_matter", "---\nlanguage: en\n---", ""),
        ("front_matter", "---\nFrom: the harbour\nTo: the town\n---\nDear all", None),
        ("front_matter", "---\nlanguage: en\nAnd so it goes on.\n---\n", None),
        ("front_matter", "---\nlanguage: en", None),
        ("front_matter", "A\n---\nb: c\n---", None),
        ("nanonets_tags", "<img>A gull</img> <page_number>3/9</page_number>", "A gull 3/9"),
        ("nanonets_tags", '<img src="a.png"> <p>', None),
        ("html_text", "<h1>A</h1>\n<p>b &lt; c<br/>d <b>e</b></p>\n\n\nf", "# A\n\nb < c\nd e\n\nf"),
        ("html_text", "<DIV>\n <p>a</p>\n <ul><li><p>b</p></li><li>c</li></ul>d</DIV>", "a\n\n- b\n\n- c\n\nd"),
        ("html_text", "<p>a\n<p>b</p>", "a\n\nb"),
        (
            "html_text",
            "<p>a</p><table><tr><td><p>b &amp; c</p></td></tr></table><p>d</p>",
            "a\n\n<table><tr><td><p>b &amp; c</p></td></tr></table>\n\nd",
        ),
        ("html_text", "<table><tr><td><p>b</p></td></tr></table>\n\na <p> b &amp; c", None),
        ("html_text", "```html\n<p>a</p>\n```", None),
        ("html_text", "x<sub>2</sub> &amp; <br> y", None),
        ("strip", " \n a \t", "a"),
    ],
)
def test_a_step_takes_away_exactly_this(step: str, text: str, expected: str | None) -> None:
    assert STEPS[step](text) == (text if expected is None else expected)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```",
        "```\nnever closed",
        "before\n```markdown\n# A\n```",
        "```markdown\n# A\n```\nI hope this helps!",
        "```markdown\n# A\n```\n\n```markdown\n# B\n```",
        "```json\n{}\n```\nor\n```json\n[]\n```",
        "a\n```\ncode\n```\nb",
        "    ```markdown is indented code\n    ```",
    ],
)
def test_a_fence_that_does_not_wrap_the_whole_answer_stays(text: str) -> None:
    if text.startswith(" "):
        text = "x\n" + text
    assert STEPS["unfence"](text) == text


@given(texts)
def test_newlines_and_strip_change_nothing_the_second_time(text: str) -> None:
    for step in (STEPS["newlines"], STEPS["strip"]):
        assert step(step(text)) == step(text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "b c", "\n"]), max_size=14).map("".join))
def test_thinking_is_gone_after_one_pass(text: str) -> None:
    once = STEPS["think"](text)
    assert STEPS["think"](once) == once
    assert "</think>" not in once


@given(st.lists(st.sampled_from(["</s>", "<s>", "<|im_end|>", "<|user|>", "a", " "]), max_size=14).map("".join))
def test_end_tokens_are_gone_after_one_pass(text: str) -> None:
    once = STEPS["end_tokens"](text)
    assert STEPS["end_tokens"](once) == once
    assert "<|" not in once


@given(texts)
def test_a_text_without_any_mark_only_loses_white_space(text: str) -> None:
    plain = text.translate({ord(char): None for char in "`<>\ufeff\r"})
    assert apply_adapters(plain, [step for step in STEPS if step != "paddle_repeats"]) == plain.strip()


@given(st.lists(st.sampled_from(["a", "b", "", "```python\nx\n```", "````\n```\n````"]), min_size=1, max_size=6))
def test_wrapping_in_a_fence_and_unwrapping_gives_the_same_page(parts: list[str]) -> None:
    page = "\n".join(parts)
    assert STEPS["unfence"](f"`````markdown\n{page}\n`````") == page


@given(texts)
def test_no_step_adds_anything(text: str) -> None:
    for name, step in STEPS.items():
        assert len(step(text)) <= len(text), name


HOSTILE = {
    "spaces inside a fence line": "```" + " " * 1_000_000 + "x",
    "back quotes": "`" * 1_000_000 + "x",
    "fences": "```markdown\n" + "```\n" * 250_000,
    "open thoughts": "<think>" * 140_000,
    "closed thoughts": "</think>" * 120_000,
    "stop tokens": "</s> " * 200_000,
    "token beginnings": "<|" * 500_000,
    "carriage returns": "\r" * 1_000_000,
    "byte order marks": "\ufeff" * 1_000_000,
    "paragraphs": "<p>a</p>" * 125_000,
    "tables that never end": "<table><p " * 100_000,
    "front matter": "---\na:\n" + "- \n" * 333_000,
    "white space": " \n" * 500_000 + "x" + "\n " * 500_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_megabyte_takes_well_under_a_second_per_step(name: str) -> None:
    for step in STEPS.values():
        start = time.process_time()
        step(HOSTILE[name])
        assert time.process_time() - start < 1.0


def test_steps_run_in_their_own_order_and_once() -> None:
    answer = "<think>hm</think>\r\n```markdown\r\n# A\r\n```<|im_end|>"
    assert apply_adapters(answer, ["strip", "unfence", "end_tokens", "think", "newlines", "strip"]) == "# A"


def test_only_the_named_steps_run() -> None:
    assert apply_adapters(" <think>a</think> ", ["strip"]) == "<think>a</think>"
    assert apply_adapters(" a ", []) == " a "


def test_checked_names_come_back_in_running_order() -> None:
    assert check_adapters(["strip", "think", "strip"]) == ("think", "strip")


def test_an_unknown_step_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ProfileError, match=r"no step 'unfense'; did you mean 'unfence'\?") as caught:
        check_adapters(["think", "unfense"])
    assert "newlines" in caught.value.hint


def test_the_documentation_names_every_step_in_order() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert rows == list(STEPS)
