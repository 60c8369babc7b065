"""Broken formulas share TeX runs and come out as each does alone; what could reach others is set alone."""

from __future__ import annotations

import pytest

from loupe.metrics.cdm import PROFILES
from loupe.metrics.cdm.colouring import colour
from loupe.metrics.cdm.drawing import tex_runs
from loupe.metrics.cdm.drawing.harmless_formulas import begun, is_whole, unheard_names
from loupe.metrics.cdm.drawing.limited_processes import Answers
from loupe.metrics.cdm.drawing.pdf_pages import PageReader
from loupe.metrics.cdm.drawing.tex_processes import TexRun, run_tex
from loupe.metrics.cdm.drawing.tex_runs import Helper, PageSource, is_endless, set_formulas
from loupe.metrics.cdm.drawing.tex_setup import Template
from tests.support.tex import need_tex

PDFTEX = Template("pdflatex", ("booktabs", "amsmath", "upgreek", "amssymb", "xcolor"), "a5")
XETEX = Template("xelatex", ("amsmath", "upgreek", "amssymb", "xcolor"), "a5")
#: TeX gives up on these: it inserts what it then refuses, in one way and in another.
ENDLESS = (
    r"\begin{matrix} \frac{= \leq}{)} d & b",
    r"\begin{array}{cc} \frac{= \leq}{)} \frac{= b}{\sum (} \frac{2 \int}{= a} & b \\ c",
)
#: As models write them: cut off, a brace or an end too few or too many, unheard commands, wrappers.
BROKEN = (
    r"a + {\mathrm{b} + c",
    r"a } + b",
    r"\text{for all x",
    r"\mathbf{ \mathbf{ \mathbf{ x",
    r"\begin{array}{cc} a & b \\ c",
    r"\begin{matrix} a & b \\ c",
    r"\begin{matrix} \frac{a+b{c-d}=\sqrt{x} & b \\ c",
    r"\begin{array}{cc} a & b \end{array} \end{array}",
    r"\left( a + b",
    r"a \right) + b",
    r"x \cr y",
    r"a \hline b",
    r"\unheard{a} + b",
    r"\begin{unheard} a \end{unheard} b",
    r"\begin{equation} a \end{equation} b",
    r"\begin{align} a &= b \\ c &= d \end{align}",
    r"a \tag{3}",
    r"x_a_b^c^d",
    r"\frac{a}{b} $ c",
    r"\begin{array}{c} a \hline \text{b} = \frac{\text{c} \end{array}",
    r"\unheard x " * 105,
    *ENDLESS,
)
#: Black ink among coloured: it would show what a neighbour leaves on the stack of colours.
WHOLE = r"\mathcolor[RGB]{0,0,15}{x} + \mathcolor[RGB]{0,0,30}{\frac {y} {z} } = q"


def shown(page: PageSource) -> object:
    if page.failure:
        return page.failure
    with PageReader(page.pdf) as reader:
        ink = reader.ink(page.page)
        return ink.size, ink.colours


def coloured(profile: str) -> list[str]:
    return [colour(tex, PROFILES[profile]).tex for tex in BROKEN]


@pytest.fixture
def documents(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []

    def seeing(template: Template, document: str, *, seconds: int, answers: Answers | None = None) -> TexRun:
        seen.append(document)
        return run_tex(template, document, seconds=seconds, answers=answers)

    monkeypatch.setattr(tex_runs, "run_tex", seeing)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "template"), [("unimernet", PDFTEX), ("omnidocbench", XETEX)])
def test_broken_formulas_are_the_same_together_as_alone_in_a_quarter_of_the_runs(
    profile: str, template: Template, documents: list[str]
) -> None:
    need_tex(profile)
    formulas = [part for tex in coloured(profile) for part in (tex, WHOLE)]
    together = list(map(shown, set_formulas(template, formulas)))
    assert len(documents) <= len(BROKEN) / 4
    alone = {tex: shown(set_formulas(template, [tex])[0]) for tex in dict.fromkeys(formulas)}
    assert together == [alone[tex] for tex in formulas]


def test_formulas_on_which_tex_gives_up_share_one_run(documents: list[str]) -> None:
    need_tex("unimernet")
    formulas = [colour(tex, PROFILES["unimernet"]).tex for tex in ENDLESS]
    formulas = [part for tex in formulas for part in (tex, rf"\left( {WHOLE}")]
    failures = [page.failure for page in set_formulas(PDFTEX, formulas, doubtful=range(len(formulas)))]
    assert failures == ["no page", ""] * len(ENDLESS) and len(documents) == 1


def test_errors_are_endless_only_if_a_hundred_of_a_known_pair_come_last() -> None:
    pair = "! Missing } inserted.\n<text>\n! Extra }, or forgotten $.\n"
    assert is_endless(pair * 50) and is_endless("! Other.\n" + pair * 50 + "l.3\n")
    assert not is_endless(pair * 49) and not is_endless(pair * 50 + "! Other.\n")
    assert not is_endless("! Missing } inserted.\n" * 100)
    assert not is_endless("! Missing $ inserted.\n! Extra }, or forgotten $.\n" * 50)


def test_tex_is_helped_out_of_endless_errors_alone_and_left_to_give_up_on_others() -> None:
    helper = Helper(r"\Mark")
    assert helper("! Missing } inserted.\n") == "", "not yet asked"
    said = ["! Missing } inserted.\n? ", "! Extra }, or forgotten $.\n? "] * 52
    answers = [helper(each) for each in said]
    assert answers[:99] == ["\n"] * 99
    assert answers[99].startswith(r"i\Mark\iffalse{\fi") and r"\Mark" not in str(answers[100:])
    assert helper("[7]\n! Missing } inserted.\n? ") == "\n", "another formula"
    assert [helper("! Other.\n? ") for _ in range(400)][-1] == "q\n"
    assert helper("! I can't find file `x'.\nPlease type another input file name: ") is None


@pytest.mark.slow
def test_colours_of_a_shared_run_are_read_as_alone(documents: list[str]) -> None:
    need_tex("unimernet")
    ink = r"\mathcolor[RGB]{0,0,15}"
    formulas = [
        rf"{ink}{{(}} {ink}{{n}} ^ {{ p }} {ink}{{\sum}} \limits _ {{ i }} ' ^ 2",
        rf"\frac{ink}{{a}}{{b}} x ^ {ink}{{q}} \text{{c {ink}{{d}} }}",
        r"\mathcolor{red}{a} \mathcolor [rgb]{.5,0,1}{b} \mathcolor[RGB]{0,0,999}{c} \textcolor[RGB]{0,0,30}{d}",
    ]
    together = list(map(shown, set_formulas(PDFTEX, formulas)))
    assert len(documents) == 1
    assert together == [shown(set_formulas(PDFTEX, [tex])[0]) for tex in formulas]


def test_a_command_that_tex_knows_and_loupe_does_not_stays_alone(documents: list[str]) -> None:
    need_tex("unimernet")
    hostile = [r"\gdef\frac{q} a", r"\global\let\mathcolor\relax b", r"\catcode`\}=12 c}", r"\setcounter{page}{7} d"]
    set_formulas(PDFTEX, [*hostile, r"\unheard a", r"\unheard b", WHOLE, WHOLE])
    for document in documents:
        assert sum(tex in document for tex in hostile) <= 1
        if any(tex in document for tex in hostile):
            assert r"\unheard" not in document and "Loupe" not in document.replace(r"\LoupeNothing", "")


def test_what_a_formula_leaves_on_the_stack_of_colours_does_not_reach_the_next(documents: list[str]) -> None:
    need_tex("omnidocbench")
    first, second = set_formulas(XETEX, [r"\mathcolor[RGB]{0,0,15}{a} \mathcolor[RGB]{0,0,30}{\tag} { 3 }", WHOLE])
    assert len(documents) == 1
    (alone,) = set_formulas(XETEX, [WHOLE])
    assert not first.failure and shown(second) == shown(alone)


@pytest.mark.slow
def test_what_a_formula_makes_of_the_commands_that_colour_does_not_reach_the_next() -> None:
    need_tex("unimernet")
    leaking = (
        r"\begin{array}{l|c|} \mathcolor[RGB]{0,0,60}{q_{\sum} \mathcolor[RGB]{0,0,75}{\partial}^\hat{y}}}"
        r" \mathcolor[RGB]{0,0,90}{\sigma} & \mathcolor[RGB]{0,0,135}{,} \mathcolor[RGB]{0,0,180}{h_{\partial}"
        r" \mathcolor[RGB]{0,0,195}{\hat{y}}^{+}} \end{array}"
    )
    reached = r"\left( \mathcolor[RGB]{0,0,15}{x} ^ { \mathcolor[RGB]{0,0,30}{2} } a"
    _, second = set_formulas(PDFTEX, [leaking, reached])
    (alone,) = set_formulas(PDFTEX, [reached])
    assert shown(second) == shown(alone)


def test_a_formula_that_never_ends_is_whole_up_to_the_command_that_does_not() -> None:
    start = r"\left( \begin{matrix} \mathcolor[RGB]{0,0,15}{a} {"
    found = begun(start + r" \mathcolor[RGB]{0,0,30}{\frac{b}{c}")
    assert found is not None and (found.start, found.closing) == (start + " ", r"}\end{matrix}\right.")
    assert begun(start) is None
    assert begun(r"\mathcolor[RGB]{0,0,15}{a % b") is None


@pytest.mark.parametrize(
    ("tex", "whole"),
    [
        (r"\left\{ a \right.", True),
        (r"\begin{array}{c} \{ a \end{array}", True),
        (r"\leftarrow \rightarrow", True),
        ("{a", False),
        ("a}", False),
        (r"\left( {a \right)}", False),
        (r"\begin{array}{c} a \end{matrix}", False),
    ],
)
def test_whether_a_formula_looks_whole(tex: str, whole: bool) -> None:
    assert is_whole(tex) is whole


def test_names_that_tex_is_asked_for() -> None:
    assert unheard_names(r"\alpha \foo{a} \begin{bar*} x \end{bar*}") == {"foo", "bar*", "endbar*"}
    assert unheard_names(r"x \LoupeHere") is None, "a name of our own documents"
    assert unheard_names(r"\fooé") is unheard_names("$$") is unheard_names(r"\begin\x") is None
