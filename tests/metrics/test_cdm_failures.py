"""What is no fault of the formula is no score: a TeX that sets nothing, a program ended from outside."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from loupe.benchmarks.shared import formula_images
from loupe.benchmarks.shared.formula_images import CdmOutcome, cdm_outcomes, cdm_warnings
from loupe.metrics import cdm_pairs
from loupe.metrics.cdm import PROFILES
from loupe.metrics.cdm.drawing.limited_processes import run_limited
from loupe.metrics.cdm.drawing.rendering import RenderCache, render
from loupe.metrics.cdm.drawing.tex_runs import set_formulas
from loupe.metrics.cdm.drawing.tex_setup import Template
from tests.support.ghostscript import drawn_pages
from tests.support.tex import need_ghostscript, need_tex

PAIR = (r"\frac { x } { 3 }", r"\frac { x } { 2 }")


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_a_tex_that_sets_nothing_is_told_of_and_what_it_failed_on_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_tex("unimernet")
    cache = RenderCache(tmp_path / "cache")
    monkeypatch.setattr(formula_images, "_cache", lambda: cache)
    program(tmp_path / "bin", "pdflatex", "echo I cannot find the format file; exit 1")
    whole = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{whole}")
    (broken,) = cdm_outcomes([PAIR], profile="unimernet")
    assert broken.f1 is None and "pdflatex" in broken.failure
    monkeypatch.setenv("PATH", whole)
    (repaired,) = cdm_outcomes([PAIR], profile="unimernet")
    assert repaired.f1 == 0.667 and not repaired.failure


def test_a_program_that_breaks_after_it_has_worked_makes_no_zeros_and_nothing_of_it_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_tex("unimernet")
    cache = RenderCache(tmp_path / "cache")
    monkeypatch.setattr(formula_images, "_cache", lambda: cache)
    bad = (r"\frac { a", "x")
    for pair, f1 in ((PAIR, 0.667), ((bad[1], bad[0]), 0.0)):
        assert cdm_outcomes([pair], profile="unimernet")[0].f1 == f1
    program(tmp_path / "bin", "pdflatex", "exit 1")
    whole = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{whole}")
    others = [("a + c", "a + b"), (r"\def\z{1} \z", "a - b")]
    broken = cdm_outcomes(others, profile="unimernet")
    assert [(one.f1, "pdflatex" in one.failure) for one in broken] == [(None, True)] * 2
    monkeypatch.setenv("PATH", whole)
    assert all(one.f1 is not None for one in cdm_outcomes(others, profile="unimernet"))


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("kill -KILL $$", "killed"),
        ("kill -XCPU $$", "too slow"),
        ("kill -SEGV $$", "crashed"),
        ("exit 1", ""),
        ("head -c 99999999 /dev/zero > f", "too much output"),
    ],
)
def test_how_a_program_ended(tmp_path: Path, text: str, ending: str) -> None:
    words = ["/bin/sh", "-c", f"{text}; exit $?"]
    assert run_limited(words, tmp_path, seconds=5, environment={"PATH": "/usr/bin:/bin"}) == ending


def test_the_limit_of_cpu_time_is_not_taken_for_somebody_elses_signal(tmp_path: Path) -> None:
    words = ["/bin/sh", "-c", "while :; do :; done"]
    assert run_limited(words, tmp_path, seconds=1, environment={}) == "too slow"


def test_what_was_ended_from_outside_is_not_computed_and_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_tex("unimernet")
    profile, cache = PROFILES["unimernet"], RenderCache(tmp_path / "cache")
    real = shutil.which("pdflatex")
    killed = f"if grep -qs '{{3}}' formulas.tex; then kill -KILL $$; fi; exec {real} \"$@\""
    program(tmp_path / "bin", "pdflatex", killed)
    whole = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{whole}")
    (found,) = render([PAIR[0]], profile=profile, cache=cache)
    assert found.failure == "killed"
    monkeypatch.setattr(formula_images, "_cache", lambda: cache)
    assert cdm_outcomes([PAIR], profile="unimernet")[0].f1 is None
    monkeypatch.setenv("PATH", whole)
    (again,) = render([PAIR[0]], profile=profile, cache=cache)
    assert again.has_boxes


def test_a_page_larger_than_paper_is_not_drawn() -> None:
    need_ghostscript("unimernet")
    template = Template("pdflatex", ("amsmath", "xcolor"), "a5")
    (page,) = set_formulas(template, [r"\global\pdfpagewidth=300cm \global\pdfpageheight=300cm a"])
    assert not page.failure
    assert list(drawn_pages(page.pdf, range(1))) == ["not drawn"]


def test_ground_truths_and_predictions_never_share_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_tex("unimernet")
    real = shutil.which("pdflatex")
    program(tmp_path / "bin", "pdflatex", f'cp formulas.tex {tmp_path}/$$.tex; exec {real} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    cdm_pairs([(r"\Xi a", r"\Psi a"), (r"\Xi b", r"\Psi b")])
    documents = [file.read_text(encoding="utf-8") for file in tmp_path.glob("*.tex")]
    assert sorted((document.count(r"\Xi"), document.count(r"\Psi")) for document in documents) == [(0, 2), (2, 0)]


def test_pairs_without_a_score_are_counted_beside_the_others() -> None:
    found = cdm_warnings(
        {"a": CdmOutcome(f1=1.0), "b": CdmOutcome(failure="it was ended"), "c": CdmOutcome(f1=0.0, failure="no page")},
        profile="unimernet",
    )
    assert "for 1 of 3 (b): it was ended" in found[0]
    assert "CDM is 0 for 1 of 2 formulas that are not drawn: no page 1 (c)" in found[1]
