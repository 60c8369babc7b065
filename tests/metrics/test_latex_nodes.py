"""LaTeX as nodes: what pylatexenc 2.10 makes of it (run, not read), and any string in bounded time."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.metrics.latex_nodes import (
    MAX_NESTING,
    BeyondLimitsError,
    Chars,
    Comment,
    Environment,
    Group,
    Macro,
    Math,
    Node,
    Special,
    UnreadableLatexError,
    read_latex,
)

READ: list[tuple[str, list[Node]]] = [
    (r"\alpha中 \text1", [Macro("alpha中", (), " "), Macro("text", (Chars("1"),), "")]),
    (r"\frac{a", [Macro("frac", None, ""), Group([Chars("a")], "{", "}")]),
    (r"\frac a}", [Macro("frac", (Chars("a"), Chars("")), " ")]),
    (r"\sqrt[3}]{x}", [Macro("sqrt", (Group([Chars("3")], "[", "]"), Group([Chars("x")], "{", "}")), "")]),
    (r"\hat\frac12", [Macro("hat", (Macro("frac", None, ""),), ""), Chars("12")]),
    ("$$a$ b", [Math([Chars("a"), Math([Chars(" b")], "$", "$")], "$$", "$$")]),
    ("$a$$b$", [Math([Chars("a")], "$", "$"), Math([Chars("b")], "$", "$")]),
    (r"a\)b\]", [Chars("a"), Chars("b")]),
    ("a %b\n  c", [Chars("a "), Comment("b", "\n  "), Chars("c")]),
    ("%b\n\nc", [Comment("b", ""), Chars("\n\nc")]),
    ("a---b--c-``", [Chars("a"), Special("---"), Chars("b"), Special("--"), Chars("c-"), Special("``")]),
    (r"\\ [x]", [Macro("\\", (None, None), ""), Chars(" [x]")]),
    (r"\\*[x]", [Macro("\\", (Chars("*"), Group([Chars("x")], "[", "]")), "")]),
    (
        r"\begin{array}{l}a\end{matrix}\end{array}",
        [Environment("array", (None, Group([Chars("l")], "{", "}")), [Chars("a")])],
    ),
    (r"\begin {a", [Chars(r"\begin "), Group([Chars("a")], "{", "}")]),
    ("a \\", [Chars("a")]),
    ("a \n\n \\", [Chars("a \n\n")]),
    (r"\verb|a{| b", [Macro("verb", (Chars("a{"),), ""), Chars(" b")]),
]  # fmt: skip


@pytest.mark.parametrize(("latex", "nodes"), READ)
def test_latex_is_read_as_by_pylatexenc_2_10(latex: str, nodes: list[Node]) -> None:
    assert read_latex(latex) == nodes


def test_verb_at_the_end_is_unreadable_as_in_pylatexenc_2_10() -> None:
    with pytest.raises(UnreadableLatexError):
        read_latex(r"a\verb ")


MARKS = [
    *("{", "}", "[", "]", "$", "$$", r"\(", r"\)", r"\[", r"\]", "&", "~", "%", r"\\", r"\\[", r"\frac", r"\sqrt["),
    *(r"\text", r"\verb|", r"\begin{array}", r"\end{array}", r"\begin{a}", "\\", "--", "''", "a", "中"),
]


@given(st.lists(st.sampled_from([*MARKS, "\n", "\n\n", " "]), max_size=30).map("".join))
def test_any_latex_is_read_or_refused_and_nothing_is_made_up(latex: str) -> None:
    try:
        nodes = read_latex(latex)
    except (BeyondLimitsError, UnreadableLatexError):
        return
    assert sum(map(characters, nodes)) <= len(latex)


def characters(node: Node | None) -> int:
    """How long what stands in a node was at least."""
    if node is None:
        return 0
    if isinstance(node, Chars | Comment | Special):
        return len(node[0])
    if isinstance(node, Group | Math):
        return 1 + sum(map(characters, node.nodes))
    inner = [*(node.arguments or ()), *(node.nodes if isinstance(node, Environment) else ())]
    return len(node.name) + sum(map(characters, inner))


@pytest.mark.parametrize(
    "latex",
    [
        "{" * 100_000,
        r"\frac{" * 100_000,
        r"\frac{\begin{array}" * 1_000,
        r"\hat" * 200_000,
        "$" * 300_001,
        "\\" * 300_001,
        r"\begin{a" * 100_000,
        "%\n" * 200_000,
        r"\verb|" * 50_000,
        " " * 1_000_000 + "\\",
        "\\frac" + "\n" * 500_000,
    ],
    ids=lambda latex: f"{latex[:8]!r}",
)
def test_hostile_latex_ends_soon(latex: str) -> None:
    begin = time.process_time()
    with contextlib.suppress(BeyondLimitsError, UnreadableLatexError):
        read_latex(latex)
    assert time.process_time() - begin < 5


def test_latex_may_be_nested_up_to_the_limit_wherever_it_is_called() -> None:
    latex = "{" * (MAX_NESTING - 1) + "a"

    def deeper(frames: int) -> list[Node]:
        return read_latex(latex) if frames == 0 else deeper(frames - 1)

    assert deeper(700) == read_latex(latex)
    with pytest.raises(BeyondLimitsError):
        read_latex("{" * MAX_NESTING)
