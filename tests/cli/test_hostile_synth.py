"""`loupe synth` with a template, texts or an answer of somebody who means harm: one line, in bounded time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loupe.benchmarks.synth.page import Fact
from loupe.benchmarks.synth.scores.facts import judged
from loupe.benchmarks.synth.text.own_texts import own_prose
from loupe.cli import main
from loupe.data import bounded


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("The secret of Greta Quill is here.", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ('#import "@" + "preview/cetz:0.3.0"', "packages are not loaded"),
        ("#for i in range(0, 100000) { for j in range(0, 100000) { let k = j } }", "takes more than"),
        ('#let a = "aaaaaaaaaa" * 400000000\n#a.len()', "memory"),
        ("one #pagebreak() two", "2 pages; a template is one page"),
        ('#metadata((fields: ("total": ""))) <truth>\nx', "the field 'total' has no value"),
    ],
)
def test_a_hostile_template_costs_one_line(
    template: str, said: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "takes" in said:
        monkeypatch.setattr(bounded, "SECONDS", 8.0)
    (here / "bad.typ").write_text(template, encoding="utf-8")
    assert main(["synth", "made", "--template", "bad.typ", "--pages", "1"]) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error and not (here / "made").exists()


@pytest.mark.parametrize("option", ["--template", "--text"])
def test_links_out_of_a_folder_are_not_followed(option: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "given").mkdir()
    (here / "given/a.txt").symlink_to("../secret.txt")
    (here / "given/main.typ").write_text('#read("a.txt")', encoding="utf-8")
    assert main(["synth", "made", option, "given", "--pages", "1"]) == 2
    assert "a.txt: a link that leads out of" in capsys.readouterr().err and not (here / "made").exists()


def test_a_text_of_nothing_but_beginnings_is_read_at_once(here: Path) -> None:
    (here / "given").mkdir()
    for number, begin in enumerate(("![", "[", "\n", "<", "![](", " \n")):
        (here / f"given/{number}.md").write_text(begin * 200_000 + "\n\nHere are five plain words.", encoding="utf-8")
    assert own_prose(here / "given", "en").code == "en"


def test_more_texts_than_fit_are_refused_and_not_cut(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "given").mkdir()
    for name in "ab":
        with (here / f"given/{name}.txt").open("wb") as file:
            file.truncate(11_000_000)
    assert main(["synth", "made", "--text", "given", "--pages", "1"]) == 2
    assert "20 MB" in capsys.readouterr().err


def test_an_answer_of_nothing_but_beginnings_is_judged_at_once() -> None:
    for begin in ("<!--", "<img ", "![", "![]("):
        assert json.dumps(judged(begin * 200_000, (Fact(kind="nothing"),)))
    assert judged("![a picture](x.png) <!-- a\nnote --> <img src=y>", (Fact(kind="nothing"),))[0]["held"]
