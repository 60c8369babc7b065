"""Run folders: whole records, safe names, locks, resume rules."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.engines.predictions import _stems
from loupe.errors import RunError, WriteError
from loupe.files.file_names import safe_name
from loupe.files.folder import Folder, write_file
from loupe.files.json_lines import RecordLog, read_lines
from loupe.runs.folder import RunFolder, claim, find_runs
from loupe.runs.info import RunInfo, differences, digest_of, signature
from loupe.runs.lock import locked
from loupe.typed import encode_json
from loupe.types import Prediction


def info(**changes: object) -> RunInfo:
    made = RunInfo(
        benchmark="toy",
        benchmark_id="toy",
        version="1",
        engine="e",
        profile={"kind": "python"},
        defining={"kind": "python", "image": "fit2048"},
        data_digest="d1",
        prompt_digest="p1",
        total=2,
    )
    return msgspec.structs.replace(made, **changes)


@contextmanager
def begun(path: Path, **changes: object) -> Iterator[RunFolder]:
    """A run folder that has its run.json, as one has once its engine is open."""
    with claim(path, info(**changes)) as folder:
        folder.write_info(folder.info)
        yield folder


def log_of(path: Path, *predictions: Prediction) -> None:
    with RecordLog(Folder(path.parent), path.name) as log:
        log.append([encode_json(prediction) for prediction in predictions])


@given(st.text(min_size=1))
def test_a_safe_name_stays_in_its_folder(sample_id: str) -> None:
    path = PurePosixPath("/base", safe_name(sample_id))
    assert path.is_relative_to("/base") and ".." not in path.parts and "\0" not in str(path)
    assert all(len(part.encode()) <= 200 for part in path.parts)


@given(st.lists(st.text(min_size=1, max_size=30), unique=True, max_size=20))
def test_different_ids_get_different_names(ids: list[str]) -> None:
    assert len({safe_name(ident) for ident in ids}) == len(ids)


def test_folders_that_are_moved_aside_at_one_moment_stay_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(1970, 1, 1, tzinfo=tz)

    monkeypatch.setattr("loupe.files.folder.datetime", Stopped)
    for number in range(3):
        (tmp_path / "run").mkdir()
        write_file(tmp_path / "run" / "a.txt", b"%d" % number)
        Folder(tmp_path / "run").move_aside()
    kept = {path.parent.name: path.read_text() for path in tmp_path.rglob("a.txt")}
    aside = "run.old-19700101-000000-000000"
    assert kept == {aside: "0", f"{aside}-2": "1", f"{aside}-3": "2"}


def test_files_of_ids_that_differ_in_capitals_are_several_on_every_disk(tmp_path: Path) -> None:
    ids = ["Page1", "page1", "PAGE1", "a/\u00c4", "a/A\u0308", "a/\u00e4", "b"]
    info = RunInfo(benchmark="b", benchmark_id="b", version="1", engine="e", profile={})
    folder = RunFolder(Folder(tmp_path), info)
    assert folder.export_predictions(iter([(each, each) for each in ids]), ".txt", Folder(tmp_path / "out")) == len(ids)
    names = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.txt")]
    assert len({unicodedata.normalize("NFC", name.lower()) for name in names}) == len(ids)
    for ident in ids:
        stems = [stem for stem in _stems(ident) if (tmp_path / f"out/{stem}.txt").is_file()]
        assert (tmp_path / f"out/{stems[-1]}.txt").read_text() == ident


@pytest.mark.parametrize("torn", [b'{"sample": "b", "te', b'{"sample": "b"}', b"\0\0\0"])
def test_a_torn_last_line_goes_and_every_whole_line_stays(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_bytes(b'{"sample": "a"}\n' + torn)
    with RecordLog(Folder(path.parent), path.name) as log:
        log.append([b'{"sample": "c"}'])
    assert path.read_bytes() == b'{"sample": "a"}\n{"sample": "c"}\n'


def test_a_torn_line_longer_than_the_buffer_goes_too(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_bytes(b"{}\n" + b"x" * 300_000)
    RecordLog(Folder(path.parent), path.name).close()
    assert path.read_bytes() == b"{}\n"


def test_reading_while_a_line_is_being_written_leaves_it_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n\n[1]\n[2")
    assert [line for _, _, line in read_lines(Folder(path.parent), path.name)] == [b"{}", b"[1]"]


def test_an_atomic_write_leaves_no_other_file(tmp_path: Path) -> None:
    write_file(tmp_path / "a" / "run.json", b"1")
    write_file(tmp_path / "a" / "run.json", b"2")
    assert [(file.name, file.read_bytes()) for file in (tmp_path / "a").iterdir()] == [("run.json", b"2")]


def test_the_last_good_record_of_a_sample_counts(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as folder:
        log_of(
            folder.predictions_file,
            Prediction(sample="a", outcome="timeout"),
            Prediction(sample="a", text="first"),
            Prediction(sample="a", outcome="error", error="later"),
            Prediction(sample="b", outcome="error", error="one"),
            Prediction(sample="b", outcome="timeout", error="two"),
        )
        found = folder.predictions()
    assert found["a"].text == "first"
    assert (found["b"].outcome, found["b"].error) == ("timeout", "two")


def test_a_damaged_line_is_named_with_its_number(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as folder:
        folder.predictions_file.write_bytes(b'{"sample": "a", "class": "ok"}\nnonsense\n')
        with pytest.raises(RunError, match=r"predictions\.jsonl:2: "):
            folder.predictions()


def test_other_settings_are_refused_with_the_list_of_differences(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as folder:
        log_of(folder.predictions_file, Prediction(sample="a"))
    changed = info(defining={"kind": "python", "image": "none"}, data_digest="d2")
    with pytest.raises(RunError) as refused, claim(tmp_path / "run", changed):
        pass
    assert "engine.image: fit2048 in the folder, none now" in refused.value.message
    assert "data: pages or references changed since: d1 in the folder, d2 now" in refused.value.message
    assert "--fresh" in refused.value.hint


def test_where_an_option_changed_it_is_the_reason_and_not_the_data(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as folder:
        log_of(folder.predictions_file, Prediction(sample="a"))
    with pytest.raises(RunError) as refused, claim(tmp_path / "run", info(options={"mode": "fixed"}, data_digest="d2")):
        pass
    assert refused.value.message.endswith("other settings: option.mode: nothing in the folder, fixed now")


@pytest.mark.parametrize(("kind", "refused"), [("predictions", 0), ("python", 1)])
def test_images_are_no_part_of_what_answers_from_elsewhere_are_scored_with(kind: str, refused: int) -> None:
    whole, without = (info(profile={"kind": kind}, data_digest=digest, truth_digest="t") for digest in ("d1", "d2"))
    assert signature(whole) == signature(without) and "|data:t|" in signature(whole)
    assert len(differences(whole, without)) == refused


def test_settings_may_change_while_no_answer_is_stored(tmp_path: Path) -> None:
    with claim(tmp_path / "run", info()):
        pass
    with claim(tmp_path / "run", info(data_digest="d2")) as folder:
        assert folder.info.data_digest == "d2"


def test_another_limit_or_time_continues_the_same_run(tmp_path: Path) -> None:
    with begun(tmp_path / "run", limit=1, total=1, created="then") as folder:
        log_of(folder.predictions_file, Prediction(sample="a"))
    with claim(tmp_path / "run", info(created="now")) as folder:
        assert (folder.info.limit, folder.info.created) == (None, "then")


def test_fresh_moves_the_old_folder_aside(tmp_path: Path) -> None:
    path = tmp_path / "e" / "toy"
    with begun(path) as folder:
        log_of(folder.predictions_file, Prediction(sample="a"))
    with claim(path, info(data_digest="d2"), fresh=True) as folder:
        folder.write_info(folder.info)
        assert folder.predictions() == {}
    (aside,) = [other for other in path.parent.iterdir() if other != path]
    assert RunFolder.open(aside).predictions()["a"].sample == "a"
    assert [run.path for run in find_runs(tmp_path)[0]] == [path]


def test_fresh_also_moves_answers_that_lost_their_run_json(tmp_path: Path) -> None:
    path = tmp_path / "e" / "toy"
    with begun(path) as folder:
        log_of(folder.predictions_file, Prediction(sample="a"))
    (path / "run.json").unlink()
    with pytest.raises(RunError, match="holds answers, but no run"), claim(path, info()):
        pass
    with claim(path, info(), fresh=True) as folder:
        assert folder.predictions() == {}


def test_a_run_that_never_began_leaves_no_folder(tmp_path: Path) -> None:
    with claim(tmp_path / "e" / "toy", info()):
        pass
    assert not (tmp_path / "e").exists()


def test_a_finished_run_does_not_shrink_to_a_smaller_limit(tmp_path: Path) -> None:
    with begun(tmp_path / "run", total=5) as folder:
        log_of(folder.predictions_file, Prediction(sample="a"))
        (folder.path / "result.json").write_text("{}")
    with claim(tmp_path / "run", info(limit=2, total=2)) as folder:
        assert (folder.info.limit, folder.info.total) == (None, 5)
        assert "|n:5|" in folder.info.signature


def test_an_engine_that_became_another_one_is_refused(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as folder:
        folder.record_facts({"model": "a", "base_url": "http://here"})
        log_of(folder.predictions_file, Prediction(sample="a"))
    with claim(tmp_path / "run", info()) as folder:
        folder.record_facts({"model": "a", "base_url": "http://there"})
        with pytest.raises(RunError, match="model: a in the folder, b now"):
            folder.record_facts({"model": "b", "base_url": "http://there"})


@pytest.mark.parametrize("ids", [["a", "a.txt/b"], ["a.txt/b", "a"]])
def test_ids_that_cannot_both_be_paths_are_both_exported(tmp_path: Path, ids: list[str]) -> None:
    with begun(tmp_path / "run") as folder:
        assert folder.export_predictions(((ident, ident) for ident in ids), ".txt") == 2
        files = [file for file in (folder.path / "predictions").rglob("*") if file.is_file()]
    assert sorted(file.read_text() for file in files) == sorted(ids)


def test_a_write_that_fails_half_way_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up in the middle of a record cannot be had here without one; the failing call stands in."""
    log = RecordLog(Folder(tmp_path), "x.jsonl")
    log.append([b"1"])

    class Full:
        def __init__(self, file: object) -> None:
            self.file, self.writes = file, 0

        def __getattr__(self, name: str) -> object:
            return getattr(self.file, name)

        def write(self, data: memoryview) -> int:
            self.writes += 1
            if self.writes > 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(data[: len(data) // 2])  # type: ignore[attr-defined]

    monkeypatch.setattr(log, "_file", Full(log._file))
    with pytest.raises(WriteError, match="the disk is full"):
        log.append([b"a long record"])
    monkeypatch.undo()
    log.append([b"2"])
    log.close()
    assert (tmp_path / "x.jsonl").read_bytes() == b"1\n2\n"


def test_a_damaged_run_hides_no_other(tmp_path: Path) -> None:
    with claim(tmp_path / "engine" / "toy", info()) as folder:
        folder.write_info(info())
    damaged = tmp_path / "broken" / "toy"
    damaged.mkdir(parents=True)
    (damaged / "run.json").write_text("{")
    found, wrong = find_runs(tmp_path)
    assert [run.path for run in found] == [tmp_path / "engine" / "toy"]
    assert list(wrong) == [damaged] and f"{damaged / 'run.json'}: " in wrong[damaged].message


def test_a_second_process_is_refused_and_told_who_holds_the_run(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from loupe.files.folder import Folder\n"
        "from loupe.runs.lock import locked\n"
        "with locked(Folder(Path(sys.argv[1]))): pass"
    )
    with locked(Folder(tmp_path / "run")):
        other = subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], capture_output=True, text=True)
    assert other.returncode != 0
    assert f"is in use by process {os.getpid()}" in other.stderr
    again = subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], capture_output=True, text=True)
    assert again.returncode == 0


def test_a_missing_run_names_the_command_that_lists_them(tmp_path: Path) -> None:
    with pytest.raises(RunError) as error:
        RunFolder.open(tmp_path / "nope")
    assert (error.value.message, error.value.hint) == (f"no run at {tmp_path / 'nope'}", "list your runs: loupe runs")


@given(st.text(), st.text(alphabet=st.characters(categories=["Cs", "Ll"])))
def test_any_text_is_stored_and_read_back(text: str, hostile: str) -> None:
    read = msgspec.json.decode(encode_json(Prediction(sample="a", text=text)), type=Prediction)
    assert read.text == text
    assert len(msgspec.json.decode(encode_json(Prediction(sample="a", text=hostile)), type=Prediction).text) <= len(
        hostile
    )


def test_the_signature_names_every_part_in_one_line() -> None:
    line = signature(info(adapters=["unfence"], options={"split": "val"}, parts={"img": "fit2048"}))
    start = "toy:1|n:2|data:d1|opt:split=val|engine:e|prompt:p1|img:fit2048|set:8b42c311|adapter:unfence|loupe:"
    assert line.startswith(start)


def test_a_digest_depends_on_the_order_of_samples_but_not_of_keys() -> None:
    assert digest_of([{"a": 1, "b": 2}]) == digest_of([{"b": 2, "a": 1}])
    assert digest_of([1, 2]) != digest_of([2, 1])


def test_other_models_and_other_values_of_a_setting_sign_differently() -> None:
    changed = info(parts={"profile": "vlm/1+model+top_p"}, defining={"model": "A", "top_p": 0.1})
    pinned = info(parts={"profile": "glm-ocr/1"}, defining={"model": "zai-org/GLM-OCR", "top_p": 0.1})
    found_there = msgspec.structs.replace(pinned, facts={"model": "the-one-served"})
    others = [
        changed,
        msgspec.structs.replace(changed, defining={"model": "B", "top_p": 0.1}),
        msgspec.structs.replace(changed, defining={"model": "A", "top_p": 0.2}),
        pinned,
        found_there,
        info(defining={"text_score": 0.5}),
        info(defining={"text_score": 0.9}),
    ]
    assert len({signature(each) for each in others}) == len(others)
    assert "|model:B|profile:vlm/1+model+top_p|set:" in signature(others[1])
    assert "|model:the-one-served|profile:glm-ocr/1|adapter:" in signature(found_there)
    answers = info(profile={"kind": "predictions"}, defining={"folder": "there"})
    assert "set:" not in signature(answers) and "model:" not in signature(answers)


def test_what_a_killed_process_left_of_a_file_goes_with_the_next_one_that_writes(tmp_path: Path) -> None:
    with begun(tmp_path / "run"):
        pass
    left = tmp_path / "run" / f".loupe-{'0' * 16}.tmp"
    left.write_bytes(b"half of the scores")
    with claim(tmp_path / "run", info()):
        assert not left.exists()
