"""Scores from elsewhere: never reused, never shown as numbers of this machine, whatever their files claim."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import loupe
from loupe.cli.runs import describe
from loupe.data import seals
from loupe.errors import RunError
from loupe.files.folder import Folder
from loupe.pipeline import score_run
from loupe.pipeline.packs import unpack, write_pack
from loupe.results import given_by_scores, scored_here
from loupe.results.comparing.runs import compare_runs
from loupe.results.exports.answers_and_results import write_evaluation_layout
from loupe.results.exports.junit import comparison_suites, run_suite
from loupe.results.exports.markdown import runs_markdown
from loupe.results.exports.sample_tables import sample_rows
from loupe.results.groups import Group, group_runs
from loupe.results.matrix import make_matrix, matrix_sections
from loupe.results.scored_here import NOT_HERE, result_of
from loupe.results.sections import result_sections
from loupe.runs import folder as run_folders
from loupe.runs.folder import SEAL, RunFolder
from loupe.types import Estimate, Result
from loupe.web.view.board import Board, labels
from loupe.web.view.run_page import so_far
from loupe.web.view.run_reader import RunReader
from tests.support.command_line import make_folder

HONEST = pytest.approx(2 / 6)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of this user: two of six texts are right, and nothing of the others is."""
    root = tmp_path_factory.mktemp("honest")
    answers = {"p0": "alpha", "p1": "beta gamma", **{f"p{number}": "QQQQ" for number in range(2, 6)}}
    return loupe.score(make_folder(root), answers, runs=root / "runs", name="honest").path


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "runs/honest/mydocs"))


@pytest.fixture
def other_user(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """From the call on, this is another user, or another machine."""
    with pytest.MonkeyPatch.context() as patch:

        def become() -> None:
            patch.setenv("XDG_STATE_HOME", str(tmp_path / "state of another"))
            forget()

        yield become
    forget()


def forget() -> None:
    """A process knows its key, and the results that it has seen."""
    seals._key.cache_clear()
    scored_here._result_of.cache_clear()


def shown(run: Path) -> Result:
    found = result_of(RunFolder.open(run))
    assert found is not None
    return found


def rows_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]


def store(run: Path, rows: list[dict[str, Any]]) -> None:
    (run / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def forge_counts(run: Path) -> None:
    rows = rows_of(run)
    for score in (score for row in rows for score in row["scores"]):
        score["counts"][0] = score["counts"][1] if score["measure"] == "text_similarity" else 0.0
    store(run, rows)


def forge_result(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    for name, one in result["measures"].items():
        one |= {"value": 1.0, "low": 1.0, "high": 1.0} if name == "text_similarity" else {"value": 0.0}
    (run / "result.json").write_text(json.dumps(result | {"scored_here": True}))


def forge_both(run: Path) -> None:
    forge_counts(run)
    forge_result(run)


def unseal(run: Path) -> None:
    (run / SEAL).unlink(missing_ok=True)
    store(run, [{name: value for name, value in row.items() if name != "seal"} for row in rows_of(run)])


def forge_digests(run: Path) -> None:
    forge_both(run)
    store(run, [{**row, "digest": "", "seal": ""} for row in rows_of(run)])
    (run / SEAL).write_text(f"{'0' * 64} {'0' * 64}")


def rename(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(info | {"engine": "a better one"}))


FORGERIES = [forge_counts, forge_result, forge_both, forge_digests, unseal, rename]


@pytest.mark.parametrize("forge", FORGERIES)
def test_what_was_changed_is_marked_and_scored_to_the_honest_number(run: Path, forge: Callable[[Path], None]) -> None:
    assert shown(run).scored_here and shown(run).measures["text_similarity"].value == HONEST
    forge(run)
    found = shown(run)
    assert not found.scored_here and found.warnings[0].startswith(NOT_HERE)
    stated = found.measures["text_similarity"].value
    # Only a value that its scores give is a number at all, and then a marked one.
    assert stated == {"forge_both": 1.0, "forge_digests": 1.0, "unseal": HONEST, "rename": HONEST}.get(forge.__name__)
    again = score_run(run)
    assert again.scored_here and again.measures["text_similarity"].value == HONEST
    assert shown(run).scored_here and shown(run).measures == again.measures


def change_answer(run: Path) -> None:
    text = (run / "predictions.jsonl").read_text()
    (run / "predictions.jsonl").write_text(text.replace("QQQQ", "gamma", 1))


def change_fact(run: Path, **changed: Any) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(info | (changed or {"facts": {"model": "a better one"}})))


@pytest.mark.parametrize(
    "change",
    [
        change_answer,
        change_fact,
        lambda run: change_fact(run, notes=["verified by all"]),
        lambda run: change_fact(run, stopped="by others"),
    ],
)
def test_answers_and_facts_that_were_changed_since_are_marked(run: Path, change: Callable[[Path], None]) -> None:
    assert shown(run).scored_here
    change(run)
    assert not shown(run).scored_here and shown(run).measures["text_similarity"].value == HONEST
    score_run(run)
    assert shown(run).scored_here


def test_what_loupe_notes_in_a_finished_run_leaves_it_sealed(run: Path) -> None:
    folder = RunFolder.open(run)
    folder.write_info(msgspec.structs.replace(folder.info, stopped="interrupted", facts={"base_url": "http://x"}))
    assert shown(run).scored_here
    change_answer(run)
    folder.write_info(msgspec.structs.replace(folder.info, stopped="", notes=["more"]))
    assert not shown(run).scored_here


def test_the_result_that_is_shown_is_the_one_that_was_verified(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = (run / "result.json").read_bytes()
    forge_result(run)
    read = Folder.read

    def read_and_swap(folder: Folder, name: str, **options: Any) -> bytes:
        data = read(folder, name, **options)
        if name == "result.json":
            (run / name).write_bytes(honest)
        return data

    monkeypatch.setattr(Folder, "read", read_and_swap)
    assert shown(run).measures["text_similarity"].value == HONEST


@pytest.mark.parametrize(
    "stated",
    [
        {"low": 0.5, "high": 0.9},
        {"low": 0.0, "high": 0.1},
        {"low": None},
        {"low": -3.0, "high": 4.0},
        {"n": 7},
        {"value": 0.34},
    ],
)
def test_an_impossible_value_of_others_is_no_number(run: Path, stated: dict[str, Any]) -> None:
    unseal(run)
    result = json.loads((run / "result.json").read_text())
    result["measures"]["text_similarity"] |= stated
    (run / "result.json").write_text(json.dumps(result))
    found = shown(run)
    assert found.measures["text_similarity"].value is None and found.not_computed["text_similarity"]
    assert found.measures["cer"].value is not None


@pytest.mark.parametrize("damage", [lambda run: store(run, []), lambda run: (run / "scores.jsonl").write_text("{}\n")])
def test_a_result_without_its_scores_has_no_numbers(run: Path, damage: Callable[[Path], object]) -> None:
    damage(run)
    assert {one.value for one in shown(run).measures.values()} == {None}


def test_a_slice_that_its_scores_do_not_give_is_left_out(run: Path) -> None:
    unseal(run)
    result = json.loads((run / "result.json").read_text())
    result["slices"]["half"]["0"]["text_similarity"]["value"] = 0.99
    result["slices"]["made_up"] = {"a": {"text_similarity": {"value": 1.0, "n": 6}}}
    (run / "result.json").write_text(json.dumps(result))
    slices = shown(run).slices
    assert "text_similarity" not in slices["half"]["0"] and "cer" in slices["half"]["0"] and not slices["made_up"]["a"]


def test_the_mark_stands_wherever_a_pack_is_shown(honest: Path, tmp_path: Path) -> None:
    write_pack(RunFolder.open(honest), tmp_path / "pack.tar.gz", with_truth=True)
    run = unpack(tmp_path / "pack.tar.gz", tmp_path / "runs").path
    folder, ours = RunFolder.open(run), RunFolder.open(honest)
    assert NOT_HERE in str(describe(folder)["headline"]) and describe(folder)["scored_here"] is False
    assert NOT_HERE not in str(describe(ours)["headline"]) and describe(ours)["scored_here"] is True
    compared = compare_runs([honest, run])
    assert [NOT_HERE in row.name for row in compared.runs] == [not row.scored_here for row in compared.runs]
    assert sorted(row.scored_here for row in compared.runs) == [False, True]
    (group,) = group_runs([honest, run], Group)
    assert sorted(NOT_HERE in entrant.label for entrant in group.entrants) == [False, True]
    texts = [repr(matrix_sections(make_matrix([folder]))), repr(result_sections(shown(run)))]
    python = loupe.load_run(run)
    texts += [repr(python), python._repr_html_(), runs_markdown([(folder, shown(run))])]
    index = RunReader(run, tmp_path).refresh()
    texts += [*labels([index]).values()]
    write_evaluation_layout([run], tmp_path)
    (written,) = (tmp_path / "results").iterdir()
    texts += [written.read_text(), *(str(row["scored"]) for row in sample_rows(folder))]
    assert [text for text in texts if NOT_HERE not in text] == []
    # A CI system takes a suite of another name for another suite: there the mark is a property.
    (pair,), alone = comparison_suites(compared), run_suite(folder, shown(run))
    assert [pair.properties["scored_here"], alone.properties["scored_here"]] == ["False", "False"]
    assert NOT_HERE not in pair.name + alone.name and " against " in pair.name
    assert not python.scored_here and json.loads(written.read_text())["scored_here"] is False


def test_scores_of_others_without_a_result_are_marked_in_the_pages(run: Path, other_user: Callable[[], None]) -> None:
    (run / "result.json").unlink()
    assert not RunReader(run, run).refresh().is_of_others
    other_user()
    assert RunReader(run, run).refresh().is_of_others


def test_own_scores_of_other_answers_are_marked_in_the_pages(run: Path) -> None:
    (run / "result.json").unlink()
    reader = RunReader(run, run)
    assert not reader.refresh().is_of_others
    assert NOT_HERE not in so_far(Board([reader.refresh()]), reader.refresh())
    change_answer(run)
    changed = RunReader(run, run).refresh()
    assert changed.is_of_others and so_far(Board([changed]), changed).endswith(f"so far ({NOT_HERE})")
    (run / "predictions.jsonl").write_text("")
    assert reader.refresh().is_of_others and RunReader(run, run).refresh().is_of_others


def test_a_copy_on_another_machine_is_shown_with_the_mark_and_scored_anew_with_one_line(
    run: Path, other_user: Callable[[], None]
) -> None:
    before = shown(run).measures
    other_user()
    assert not shown(run).scored_here
    assert {name: one.value for name, one in shown(run).measures.items()} == {n: o.value for n, o in before.items()}
    said: list[str] = []
    old = [row["seal"] for row in rows_of(run)]
    assert score_run(run, say=said.append).measures == before
    assert said == [f"{run}: its scores were not made by your Loupe on this machine, so they are made anew"]
    assert not {*old} & {row["seal"] for row in rows_of(run)} and shown(run).scored_here
    assert score_run(run, say=said.append).measures == before and len(said) == 1


def test_a_run_without_a_seal_is_scored_once_and_in_silence(run: Path) -> None:
    unseal(run)
    said: list[str] = []
    assert score_run(run, say=said.append).measures["text_similarity"].value == HONEST
    assert not said and shown(run).scored_here
    inode = (run / "scores.jsonl").stat().st_ino
    score_run(run)
    assert (run / "scores.jsonl").stat().st_ino == inode  # it was only read
    score_run(run, fresh=True)
    assert (run / "scores.jsonl").stat().st_ino != inode


def test_scores_survive_a_crash_before_their_result(run: Path) -> None:
    RunFolder.open(run).drop_result()
    rows = rows_of(run)
    rows[0]["diagnostics"]["mark"] = 1.0  # would be gone if the sample were scored anew
    store(run, rows)
    score_run(run)
    assert "mark" not in rows_of(run)[0]["diagnostics"]  # somebody changed the line
    kept = (run / "scores.jsonl").read_bytes()
    RunFolder.open(run).drop_result()
    score_run(run)
    assert (run / "scores.jsonl").read_bytes() == kept and shown(run).scored_here


def test_the_key_is_private_and_one_that_is_not_counts_for_nothing(tmp_path: Path) -> None:
    key = seals._kept_in(tmp_path / "state")
    file = tmp_path / "state" / seals._KEY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and seals._kept_in(tmp_path / "state") == key == file.read_bytes()
    for spoil in (lambda: file.chmod(0o644), lambda: (file.chmod(0o600), file.write_bytes(b""))):
        spoil()
        with pytest.raises(OSError, match="private"):
            seals._kept_in(tmp_path / "state")
    with pytest.raises(OSError, match="anybody"):
        seals._kept_in(Path("state"))


def test_without_a_place_for_a_key_nothing_outlives_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "a file"
    nowhere.write_text("")
    monkeypatch.setattr(seals, "state_folder", lambda: nowhere / "state")
    monkeypatch.setattr(seals, "cache_folder", lambda **_: tmp_path / "cache")
    seals._key.cache_clear()
    first = seals.seal("a test", b"of these")
    assert (tmp_path / "cache" / seals._KEY).exists() and seals.is_seal(first, "a test", b"of these")
    assert not seals.is_seal(first, "a test", b"of the", b"se")
    monkeypatch.setattr(seals, "cache_folder", lambda **_: nowhere / "cache")
    seals._key.cache_clear()
    assert seals.seal("a test", b"of these") != first and seals._key() == seals._OF_THIS_PROCESS
    seals._key.cache_clear()


def test_a_benchmark_that_is_not_here_leaves_marked_values_that_its_scores_give(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(info | {"benchmark": "/nowhere/mydocs"}))
    unseal(run)
    assert shown(run).measures["text_similarity"].value == HONEST and not shown(run).scored_here
    forge_result(run)
    assert shown(run).measures["text_similarity"] == Estimate(value=None, n=6)
    assert "cannot be checked" in shown(run).not_computed["text_similarity"]
    with pytest.raises(loupe.LoupeError):
        score_run(run)
    assert not shown(run).scored_here


def test_another_runs_scores_are_no_scores_of_this_run(run: Path, honest: Path) -> None:
    better = {f"p{number}": text for number, text in enumerate(("alpha", "beta gamma", "delta", "epsilon zeta", "eta"))}
    other = loupe.score(honest.parents[2] / "mydocs", better, runs=run.parents[1], name="other").path
    for name in ("scores.jsonl", "result.json", SEAL):
        shutil.copy(other / name, run / name)
    assert not shown(run).scored_here
    assert score_run(run).measures["text_similarity"].value == HONEST
    assert os.path.lexists(run / SEAL)


def test_results_are_read_past_the_mark_by_those_alone_that_make_them() -> None:
    source = Path(loupe.__file__).parent
    found = {
        file.relative_to(source).as_posix() for file in source.rglob("*.py") if "stored_result" in file.read_text()
    }
    makers = {"runs/folder.py", "results/scored_here.py", "cli/shared/overview.py"}
    assert {name for name in found if not name.startswith("pipeline/")} == makers


def heavy(run: Path, *, tags: int = 0, measures: int = 0, details: int = 0) -> None:
    """Make the scores of a stranger costly: many tags or measures, details of many small objects."""
    unseal(run)
    more = [{"measure": f"m{number}", "counts": [1.0, 1.0]} for number in range(measures)]
    named = {f"tag{number}": "a" for number in range(tags)}
    rows = [
        {**row, "tags": named | row["tags"], "scores": row["scores"] + more, "details": {"x": [[]] * details}}
        for row in rows_of(run)
    ]
    store(run, rows)
    result = json.loads((run / "result.json").read_text())
    result["measures"] |= {f"m{number}": {"value": 1.0, "n": 6} for number in range(measures)}
    result["slices"] |= {tag: {"a": {"cer": {"value": 0.5, "n": 6}}} for tag in named}
    (run / "result.json").write_text(json.dumps(result))


def test_tags_and_measures_of_a_stranger_cost_a_bounded_time(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heavy(run, tags=20_000)
    listed = result_of(RunFolder.open(run), whole=False)
    assert listed is not None and not listed.slices and listed.measures["text_similarity"].value == HONEST
    monkeypatch.setattr(given_by_scores, "_MOST_ESTIMATES", 300)
    began = time.process_time()
    found = shown(run)
    assert time.process_time() - began < 5
    assert 0 < len(found.slices) < 300 and any("too many slices" in warning for warning in found.warnings)
    heavy(run, measures=2000)
    assert not any(one.value is not None for one in shown(run).measures.values()) and len(shown(run).measures) == 1


def test_no_command_reads_more_measures_of_a_stranger_than_it_could_show(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folders, "MOST_MEASURES", 2)
    assert len(list(RunFolder.open(run).scores())) == 6, "one's own may have many"
    unseal(run)
    for read in (RunFolder.scores, RunFolder.counts):
        with pytest.raises(RunError, match="came from elsewhere and have more than 2 measures") as refused:
            list(read(RunFolder.open(run)))
    assert f"loupe score {run}" in str(refused.value.hint)


def test_details_of_a_stranger_are_not_held(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heavy(run, details=100_000)
    monkeypatch.setattr(given_by_scores, "_MOST_DETAILS", 10**6)
    tracemalloc.start()
    assert shown(run).measures["text_similarity"].value == HONEST
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 10**6, "one row of details as objects is 6 MB"
