"""`loupe synth` and `loupe run synth` as a user types them: folders, own texts and designs, and mistakes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from loupe.cli import main
from loupe.cli.shared.until import Until, _ends, _why, asked_until
from loupe.engines.registry import load_profile
from loupe.errors import UsageError
from loupe.pipeline import Plan
from loupe.stats.stopping import Look

DOCS = Path(__file__).parents[3] / "docs/synth.md"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_folder_of_generated_pages_is_one_of_ones_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synth", "made", "--seed", "7", "--tracks", "plain,formulas,detail,traps", "--pages", "22"]) == 0
    assert main(["bench", "check", "made"]) == 0
    samples = rows(here / "made/samples.jsonl")
    assert {one["task"] for one in samples} == {"text", "formula", "facts"}
    assert len(list((here / "made/clean").iterdir())) == len(list((here / "made/pages").iterdir())) == len(samples)
    boxes = rows(here / "made/boxes.jsonl")
    assert [one["id"] for one in boxes] == [one["id"] for one in samples]
    left, top, right, bottom = boxes[0]["boxes"][0]["box"]  # type: ignore[index]
    assert 0 < left < right < 1240 and 0 < top < bottom < 1754
    capsys.readouterr()
    assert main(["synth", "made"]) == 2
    assert "something lies there already" in capsys.readouterr().err


def test_the_invoice_of_the_documentation_is_a_benchmark(here: Path) -> None:
    (here / "invoice.typ").write_text(DOCS.read_text(encoding="utf-8").split("```typst\n")[1].split("```")[0], "utf-8")
    assert main(["synth", "invoices", "--template", "invoice.typ", "--pages", "2", "--seed", "3"]) == 0
    samples, facts = rows(here / "invoices/samples.jsonl"), rows(here / "invoices/facts.jsonl")
    assert len(samples) == 2 and len(facts) == 6
    assert all(str(fact["text"]) in str(samples[number // 3]["reference"]) for number, fact in enumerate(facts))
    assert main(["bench", "check", "invoices"]) == 0


def test_texts_of_ones_own_take_the_place_of_made_up_ones(here: Path) -> None:
    (here / "texts").mkdir()
    text = "# Heads\n\nThe turbine of Greta Quill hums in hall 12. It was **mended** twice by a [friend](http://x).\n"
    (here / "texts/a.md").write_text(text, encoding="utf-8")
    assert main(["synth", "mine", "--text", "texts", "--tracks", "prior", "--pages", "5"]) == 0
    natural = str(rows(here / "mine/samples.jsonl")[0]["reference"])
    words = " ".join(natural.split())
    assert "It was mended twice by a friend." in words and "http" not in words and "baker" not in words


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("#let x = ", "bad.typ:1: expected expression"),
        ('\n#import "@preview/cetz:0.3.0"', "bad.typ:2: packages are not loaded"),
        ('#read("/etc/passwd")', "bad.typ:1: file not found"),
        ("#metadata((total: 3)) <truth>", "<truth>:"),
        ('#set text(font: "No Such Font")\nx', "bad.typ: unknown font family"),
    ],
)
def test_a_template_with_an_error_gives_one_line(
    template: str, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "bad.typ").write_text(template, encoding="utf-8")
    assert main(["synth", "made", "--template", "bad.typ", "--pages", "1"]) == 2
    error, hint = capsys.readouterr().err.strip().splitlines()
    assert error.startswith("error: ") and said in error and hint.startswith("hint: ")
    assert not (here / "made").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["synth", "made", "--pages", "0"], "pages=0"),
        (["synth", "made", "--tracks", "plane"], "did you mean 'plain'"),
        (["run", "synth", "-e", "pdf_text", "-o", "pages=0"], "pages=0"),
        (["run", "synth", "-e", "pdf_text", "-o", "seed=today"], "seed=today"),
        (["run", "synth", "-e", "pdf_text", "--data", "."], "synth makes its pages itself"),
        (["run", "synth", "-e", "pdf_text", "--until", "x"], "--until x: not a width"),
        (["run", "synth", "-e", "pdf_text", "--until", "tarps=1"], "did you mean 'traps'"),
        (["run", "sample_pages", "-e", "pdf_text", "--until", "1"], "--until needs pages without end"),
        (["run", "synth", "-e", "pdf_text", "--max-pages", "9"], "--max-pages goes with --until"),
        (["run", "synth", "-e", "pdf_text", "--until", "1", "--until-difference", "a"], "not two engines"),
        (["run", "synth", "-e", "pdf_text", "--until", "1", "--limit", "3"], "leave out --limit"),
    ],
)
def test_a_mistake_is_one_line_and_a_hint(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


def test_a_text_with_control_characters_is_named_with_its_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "texts").mkdir()
    (here / "texts/a.txt").write_text("One fine line.\nAnd a bell \x07 here.\n", encoding="utf-8")
    assert main(["synth", "made", "--text", "texts"]) == 2
    assert "texts/a.txt:2: the control character U+0007 cannot be typeset" in capsys.readouterr().err


def test_reading_stops_at_the_most_pages_and_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "synth", "-e", "pdf_text", "-o", "tracks=formulas", "-o", "form=pdf", "--until", "0.001"]
    assert main([*words, "--max-pages", "12", "--plain"]) == 0
    told = capsys.readouterr()
    assert "stopped at the most pages (12): ±" in told.err and "0.001 was asked for" in told.err
    result = json.loads((here / "runs/pdf_text/synth/result.json").read_text(encoding="utf-8"))
    assert result["total"] == 12 and any("stopped at the most pages" in each for each in result["warnings"])


def test_the_stop_by_width_is_named_and_clusters_stay_whole() -> None:
    until = asked_until("synth", "0.5", "a,b", 90)
    assert until == Until(measure="", half_width=0.5, scale=100.0, between=("a", "b"), pages=90)
    said = _why(Look(clusters=60, half_width=0.0049, ended="width"), until, 70)
    assert said == "stopped by width: ± 0.49 of the difference of a and b in the headline after 70 pages"
    options = {"tracks": "prior,tables", "pages": "20"}
    ends = _ends(Plan(benchmark="synth", label="pdf_text", profile=load_profile("pdf_text")[1], options=options))
    assert ends[-1] >= 20 and 5 in ends and ends == sorted(set(ends))
    with pytest.raises(UsageError, match="goes with --until"):
        asked_until("synth", "", "a,b", None)


def test_pages_are_drawn_in_a_private_folder_if_the_cache_cannot_be_written(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "file").touch()
    (here / "temporary").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(here / "temporary"))
    assert main(["run", "synth", "-e", "pdf_text", "-o", "form=pdf", "-o", "tracks=plain", "-o", "pages=3"]) == 0
    assert {path.stat().st_mode & 0o777 for path in here.glob("temporary/loupe-of-user-*")} == {0o700}
    assert len([*here.glob("temporary/loupe-of-user-*/synth/**/*.pdf")]) == 3
