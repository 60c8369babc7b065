"""Data that is not proven to be the published set is marked beside every number that it gives."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import loupe
from loupe.benchmarks import get_benchmark
from loupe.benchmarks.published import published_rows
from loupe.cli.runs import describe
from loupe.data.hub.archives import pack, unpack
from loupe.data.hub.manifest import read_manifest, write_manifest
from loupe.data.hub.origin import HUB, note_origin
from loupe.errors import UsageError
from loupe.files.folder import Folder
from loupe.pipeline import score_run
from loupe.results.comparing.runs import compare_runs
from loupe.results.exports.hub_results import write_hub_results
from loupe.results.exports.sample_tables import sample_rows
from loupe.results.groups import Group, group_runs
from loupe.results.matrix import make_matrix, matrix_sections
from loupe.results.reproduction import reproduce
from loupe.results.scored_here import result_of
from loupe.results.sections import result_sections
from loupe.runs.folder import RunFolder
from loupe.web.view.board import labels
from loupe.web.view.run_reader import RunReader
from tests.support.synthetic import write_prepared

PACK, UNKNOWN = "data from a pack", "data of unknown origin"


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("LOUPE_DATA", str(tmp_path / "store"))
    return write_prepared("ocrbench", tmp_path / "fake", 4)


def test_data_from_a_pack_is_marked_wherever_its_numbers_are_shown(answers: dict[str, str], tmp_path: Path) -> None:
    pack(tmp_path / "fake", tmp_path / "pack.tar", ident="ocrbench")
    root = tmp_path / "store/ocrbench"
    unpack(tmp_path / "pack.tar", lambda _: root)
    run = loupe.score("ocrbench", answers, runs=tmp_path / "runs", name="glm-ocr")
    other = loupe.score("ocrbench", answers, runs=tmp_path / "runs", name="other").path
    folder, result = RunFolder.open(run.path), run.result
    assert result.scored_here and result.data_origin == "pack"
    assert any(f"the data in {root}" in line and "may not be the published set" in line for line in result.warnings)
    (group,) = group_runs([run.path], Group)
    texts = [str(describe(folder)["headline"]), repr(run), repr(matrix_sections(make_matrix([folder])))]
    texts += [repr(result_sections(result)), *(row.name for row in compare_runs([run.path, other]).runs)]
    texts += [*labels([RunReader(run.path, tmp_path).refresh()]).values(), *(each.label for each in group.entrants)]
    texts += [str(row["scored"]) for row in sample_rows(folder)]
    row = published_rows("ocrbench", get_benchmark("ocrbench").version)[0]
    settings = reproduce(row, get_benchmark("ocrbench"), [folder], tmp_path).settings
    texts += [each.here for each in settings if each.name == "data" and each.verdict == "differs"]
    assert [text for text in texts if PACK not in text] == [] and len(texts) > 10
    with pytest.raises(UsageError, match=PACK):
        write_hub_results(folder, tmp_path / "model")
    # The same files, fetched from there: the result is made anew, and nothing is marked.
    write_manifest(Folder(root), msgspec.structs.replace(read_manifest(root), repo="echo840/OCRBench"))
    note_origin(root, HUB)
    assert score_run(run.path).data_origin == ""
    assert PACK not in str(describe(folder)["headline"])
    # Another data set of the hub is not this one.
    write_manifest(Folder(root), msgspec.structs.replace(read_manifest(root), repo="stranger/OCRBench"))
    note_origin(root, HUB)
    assert score_run(run.path).data_origin == "unknown"


def test_data_that_the_run_of_a_stranger_names_is_marked_until_the_user_names_it(
    answers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = loupe.score("ocrbench", answers, runs=tmp_path / "runs", name="glm-ocr", data=tmp_path / "fake").path
    for name in ("result.json", "scored.seal", "scores.jsonl"):
        (run / name).unlink()
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(info | {"data": "fake"}))
    monkeypatch.chdir(tmp_path)
    result = score_run(run)
    assert result.scored_here and result.data_origin == "unknown"
    assert any(line.startswith("Loupe did not fetch the data in fake, so it may not be") for line in result.warnings)
    assert UNKNOWN in str(describe(RunFolder.open(run))["headline"])
    shown = result_of(RunFolder.open(run))
    assert shown and shown.data_origin == "unknown"
    # By `--data` it is named: a warning is left, and nothing is published.
    assert score_run(run, data=tmp_path / "fake").data_origin == "named"
    assert any(f"the data in {tmp_path / 'fake'}, so" in line for line in RunFolder.open(run).stored_result().warnings)
    assert "data" not in str(describe(RunFolder.open(run))["headline"])
    with pytest.raises(UsageError, match=UNKNOWN):
        write_hub_results(RunFolder.open(run), tmp_path / "model")
