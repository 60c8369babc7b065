"""`loupe synth` with a template, texts or an answer of somebody who means harm: one line, in bounded time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loupe.cli import main
from loupe.data import bounded
from loupe.features.synth import benchmark as synth
from loupe.features.synth.page import Fact
from loupe.features.synth.scoring import judged
from loupe.features.synth.texts import own_texts
from loupe.features.synth.typeset import templates
from loupe.features.synth.typeset.drawing import without_glyph
from loupe.features.synth.typeset.typesetter import FACES


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
        ('#metadata((fields: ("total": "1.00"))) <truth>\nx', "the field 'total' is not on the page: '1.00'"),
        ('#metadata((fields: ("a": "\\u{1b}[31m" * 100000))) <truth>\nx', "the field 'a' is not on the page"),
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
    assert said in error and "Traceback" not in error and len(error) < 1000 and not (here / "made").exists()


def test_what_a_killed_typesetter_leaves_is_taken_away_by_the_next(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates.tempfile, "tempdir", str(here))
    (here / "x.typ").write_text("x", encoding="utf-8")
    leave = "import os; from loupe.features.synth.typeset import templates as t\n"
    leave += "kept = t._places('x.typ'); kept.__enter__(); os._exit(9)"
    env = os.environ | {"TMPDIR": str(here)}
    assert subprocess.run([sys.executable, "-c", leave], cwd=here, env=env).returncode == 9
    assert len(list(here.glob("loupe-template-*"))) == 1
    with templates._places("x.typ") as (main_file, root):
        assert main_file.read_text() == "x" and list(here.glob("loupe-template-*")) == [root]
    assert not list(here.glob("loupe-template-*"))


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
        (here / f"given/{number}.md").write_text(
            begin * 200_000 + "\n\n" + "Here are five plain words. " * 4, encoding="utf-8"
        )
    assert own_texts(here / "given", "en").prose.code == "en"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A box is ticked ✓ and ☃ melts.", "given/a.txt:21: the font Libertinus Serif has no '☃' (U+2603)"),
        ("ฝนตก ในเมือง วันนี้", "given/a.txt:21: the font Libertinus Serif has no 'ก' (U+0E01)"),
    ],
)
def test_letters_that_the_font_lacks_are_named_and_not_set_as_boxes(
    text: str, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "given").mkdir()
    (here / "given/a.txt").write_text("Here are five plain words.\n" * 20 + text, encoding="utf-8")
    assert main(["synth", "made", "--text", "given", "--pages", "1"]) == 2
    assert said in capsys.readouterr().err and not (here / "made").exists()


def test_a_text_of_all_letters_there_are_is_refused_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "given").mkdir()
    letters = "".join(filter(str.isalpha, map(chr, range(0x20, 0x30000))))
    words = [letters[start : start + 9] for start in range(0, len(letters), 9)]
    lines = (" ".join(words[start : start + 9]) for start in range(0, len(words), 9))
    (here / "given/a.txt").write_text("\n\n".join(lines), encoding="utf-8")
    assert main(["synth", "made", "--text", "given", "--pages", "1"]) == 2
    assert "different letters; texts have 20,000 at most" in capsys.readouterr().err


def test_pages_in_a_face_that_lacks_letters_are_left_out(here: Path) -> None:
    (here / "given").mkdir()
    (here / "given/a.txt").write_text("Here are five plain words → so it is.\n" * 20, encoding="utf-8")
    pages = list(synth.load(None, tracks="plain", pages=8, text=str(here / "given")))
    faces = {page.tags["face"] for page in pages}
    assert len(pages) == 8 and "Libertinus Serif" in faces
    assert not any(without_glyph("→", face) for face in FACES if face.name in faces)


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
