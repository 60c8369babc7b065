"""TeX on hostile and broken formulas: neighbours are unharmed, nothing leaves the folder, everything ends."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from loupe.metrics.cdm.drawing import tex_setup
from loupe.metrics.cdm.drawing.harmless_formulas import is_harmless
from loupe.metrics.cdm.drawing.pdf_pages import PageInk, PageReader
from loupe.metrics.cdm.drawing.tex_runs import PageSource, set_formulas
from loupe.metrics.cdm.drawing.tex_setup import Template, is_refused
from tests.support.tex import need_tex

need_tex("unimernet")
PLAIN = Template("pdflatex", ("amsmath", "xcolor"), "a5")
GOOD = r"\mathcolor[RGB]{0,0,15}{x} \mathcolor[RGB]{0,0,30}{+} \mathcolor[RGB]{0,0,45}{\frac {y} {z} }"
#: Formulas that break, leak groups or colours, redefine, ship pages, end the document, look beyond their page.
BROKEN = (
    r"\frac{a",
    r"a}",
    r"{a",
    r"{\bf {{ a",
    r"\begin{array}{c} a & b",
    r"a $ b",
    r"$$ a",
    r"\end{displaymath} a",
    r"\left( a",
    r"a \right)",
    r"\unknown{a}",
    r"\begin{nothing} a \end{nothing}",
    r"\mathcolor[RGB]{0,0,15}{a",
    r"\color[RGB]{0,0,15} { a",
    r"\end{displaymath}\color[RGB]{255,0,0}\begin{displaymath} a",
    r"\gdef\frac{broken}",
    r"\global\let\mathcolor\relax",
    r"\global\hoffset=3cm a",
    r"\setcounter{page}{77}\thepage",
    r"\end{document}",
    r"\shipout\hbox{a}",
    r"\end{displaymath}\newpage a\begin{displaymath}",
    r"\iftrue a",
    r"\iffalse a",
    r"\def\x{a",
    r"\hbox{a",
    r"\vbox\bgroup a",
    r"a \\ & b",
    r"\pagecolor{red} a",
    r"% all a comment",
    r"\batchmode\errorstopmode a",
    r"\catcode`\}=12 a}",
    r"\everymath{\frac} a",
    r"\outer\def\a{} a",
    r"\LoupePage3.",
    r"\end{displaymath}\let\frac\binom\begin{displaymath}",
    r"\]\endgroup\let\frac\binom\begingroup\[ a}",
    r"\end{array}\large\begin{array}{c} a",
    r"\end{displaymath}\def\mathcolor[#1]#2#3{q}\begin{displaymath} a",
    r"\begin{gdef}\frac#1#2{q} a",
    r"\hoffset=3cm a",
    r"\tag{1} a",
    r"\begin{equation} a \end{equation}",
    r"\InputIfFileExists{formulas.tex}{}{} a",
    r"\begin{input} formulas.tex",
    "",
)
PASSWD = Path("/etc/passwd")


def ink(page: PageSource) -> PageInk | None:
    if page.failure:
        return None
    with PageReader(page.pdf) as reader:
        return reader.ink(page.page)


def shown(page: PageSource) -> object:
    found = ink(page)
    return page.failure if found is None else (found.size, found.colours)


@pytest.fixture(scope="module")
def alone() -> dict[str, object]:
    return {tex: shown(set_formulas(PLAIN, [tex])[0]) for tex in (GOOD, *BROKEN)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_formula_is_the_same_among_broken_ones_as_alone(alone: dict[str, object], seed: int) -> None:
    formulas = [*BROKEN, *[GOOD] * len(BROKEN)]
    random.Random(seed).shuffle(formulas)
    for tex, page in zip(formulas, set_formulas(PLAIN, formulas), strict=True):
        assert shown(page) == alone[tex], tex


@pytest.mark.parametrize(
    "tex",
    [r"\input{/etc/passwd}", r"\input /etc/passwd ", r"\openin5=/etc/passwd \read5 to \a \a", r"\include{/etc/passwd}"],
)
def test_files_outside_the_folder_are_not_read(tex: str) -> None:
    empty = ink(set_formulas(PLAIN, [""])[0])
    found = ink(set_formulas(PLAIN, [tex])[0])
    # At most the name of the file is set, never a line of it: the real one has a page full.
    assert found is None or empty is None or found.size[1] < 60


def test_nothing_is_written_outside_the_folder_and_no_shell_is_there(tmp_path: Path) -> None:
    target = tmp_path / "made"
    before = set(Path.cwd().iterdir())
    for tex in (
        rf"\immediate\openout5={target} \immediate\write5{{x}}\immediate\closeout5 x",
        rf"\immediate\write18{{touch {target}}} x",
        rf"\input|\"touch {target}\" x",
        r"\newwrite\w\immediate\openout\w=../escaped x",
    ):
        set_formulas(PLAIN, [tex])
    assert not target.exists()
    assert set(Path.cwd().iterdir()) == before


SPECIALS = (
    r"\special{psfile=/etc/passwd}",
    r"\csname special\endcsname{x}",
    r"\begin{special}{pdf:fstream @x (/etc/passwd)} a",
    r"\catcode`\!=0 !special{pdf:fstream @x (/etc/passwd)} a",
)


@pytest.mark.parametrize("tex", SPECIALS)
def test_the_printer_is_out_of_reach(tex: str) -> None:
    assert is_refused(tex)
    assert set_formulas(PLAIN, [tex])[0].failure == "refused"


UNNAMED = (
    r"^^5cspecial{pdf:fstream @x (FILE)}^^5cspecial{pdf:put @catalog << /Foo @x >>} a",
    r"\begin {tex_special:D}{pdf:fstream @x (FILE)}\begin {tex_special:D}{pdf:put @catalog << /Foo @x >>} a",
    r"\begingroup\lccode`\~=`\s \lowercase{\endgroup\begin{~pecial}}{pdf:fstream @x (FILE)} a",
    r"\def\x{spec}\begin {\x ial}{pdf:image (FILE)} a",
    r"\begin {tex_pdfximage:D}{FILE} a",
    r"\begin {tex_ximage:D}{FILE} a",
    r"\begin {@@input}FILE  a",
)


@pytest.mark.parametrize("program", ["pdflatex", "xelatex"])
def test_no_other_spelling_brings_a_file_into_the_drawing(program: str, tmp_path: Path) -> None:
    if program == "xelatex":
        need_tex("omnidocbench")
    template = Template("xelatex" if program == "xelatex" else "pdflatex", ("amsmath", "xcolor"), "a5")
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRETSECRET42 " * 20)
    for tex in UNNAMED:
        assert not is_refused(tex)
        found = set_formulas(template, [tex.replace("FILE", str(secret))])[0]
        parts = found.pdf.split(b"stream")
        assert b"SECRETSECRET42" not in b"".join([found.pdf, *map(inflated, parts)]), tex


def test_a_doubled_caret_is_drawn_as_upstream_draws_it() -> None:
    assert shown(set_formulas(PLAIN, [r"x^^41"])[0]) == shown(set_formulas(PLAIN, ["xA"])[0]) != "refused"


def inflated(part: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(part.lstrip(b"\r\n"))
    except zlib.error:
        return b""


def test_the_printer_of_xetex_is_asked_for_pages_and_colours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    need_tex("omnidocbench")
    template = Template("xelatex", ("amsmath", "xcolor"), "a5")
    # As if no name were known: the traces in TeX's output decide.
    monkeypatch.setattr(tex_setup, "_REFUSED", re.compile(r"(?!)"))
    found = [page.failure for page in set_formulas(template, [*SPECIALS[:1], *SPECIALS[2:], GOOD])]
    assert found == ["refused"] * 3 + [""]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tex", "failures"),
    [
        (r"\def\a{\a}\a", {"too slow"}),
        (r"\loop\iftrue\repeat", {"too slow", "no page"}),
        (r"\def\a{\a\a}\a", {"no page", "too slow"}),
        (r"\def\a{x\a}\a", {"no page", "too slow"}),
        (r"\def\a{\immediate\write5{" + "y" * 500 + r"}\a}\immediate\openout5=f \a", {"too much output", "too slow"}),
        (r"\def\a{\shipout\hbox{x}\a}\a", {"too much output", "too slow", "no page", "several pages"}),
        (r"\def\a{\typeout{" + "y" * 500 + r"}\a}\a", {"too much output", "too slow"}),
    ],
)
def test_bombs_end_alone_and_have_a_name(tex: str, failures: set[str]) -> None:
    began = time.monotonic()
    before, bomb, after = set_formulas(PLAIN, [GOOD, tex, GOOD])
    assert bomb.failure in failures
    assert shown(before) == shown(after) == shown(set_formulas(PLAIN, [GOOD])[0])
    assert time.monotonic() - began < 400


def test_ten_megabytes_are_given_up_at_once() -> None:
    began = time.monotonic()
    big, good = set_formulas(PLAIN, ["x" * 10_000_000, GOOD])
    assert big.failure == "too large"
    assert not good.failure
    assert time.monotonic() - began < 60


def test_only_formulas_of_known_commands_share_a_run() -> None:
    assert is_harmless(GOOD)
    assert is_harmless(r"\begin{array}{c} \alpha \\ \partial \end{array} \operatorname*{x} \left\{ \big( \, \{ \}")
    for tex in (
        r"\gdef\a{}",
        r"\the\hoffset",
        r"\end { document }",
        r"\begin{equation}x",
        r"\] x",
        "$$",
        r"\begin\x",
        r"\label{a}",
        r"\unheard x",
        r"\begin{pdfximage}",
    ):
        assert not is_harmless(tex), tex


def test_tex_sees_nothing_of_the_users_environment() -> None:
    code = (
        "import os; os.environ['SECRET_KEY'] = 'hush'\n"
        "from loupe.metrics.cdm.drawing.tex_processes import environment\n"
        "from pathlib import Path\n"
        "assert 'hush' not in str(environment(Path('/tmp'), 'pdflatex'))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ.copy())
