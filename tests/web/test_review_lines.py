"""The file under review: only what was changed is touched, nothing is lost, nobody else's change is overwritten."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.errors import DatasetError
from loupe.web.review.entries import Change, FieldError
from loupe.web.review.line_file import ConflictError, LineFile, with_values
from loupe.web.review.review_target import open_tests
from loupe.web.review.session import Review
from tests.support.web.review_app import LINES, make_set

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=5), values, max_size=5)
manners = st.sampled_from([(", ", ": "), (",", ":"), (" , ", " : "), (",\t", ":  ")])


@settings(max_examples=40)
@given(objects, objects, manners, st.booleans())
def test_a_changed_line_holds_the_changes_and_every_other_value_as_it_was_spelled(
    record: dict[str, object], changes: dict[str, object], manner: tuple[str, str], ascii_only: bool
) -> None:
    line = json.dumps(record, separators=manner, ensure_ascii=ascii_only)
    changed = with_values(line, changes)
    assert json.loads(changed) == record | changes
    assert list(json.loads(changed)) == list(record | changes)
    untouched = {name: value for name, value in record.items() if name not in changes}
    for name, value in untouched.items():
        spelled = json.dumps({name: value}, separators=manner, ensure_ascii=ascii_only)[1:-1]
        assert spelled in changed
    assert with_values(line, {}) == line


def test_what_a_line_says_in_its_own_manner_stays() -> None:
    assert with_values('{"n": 1.50, "n": 2E3 , "x":[ ] }', {"n": 7}) == '{"n": 1.50, "n": 7 , "x":[ ] }'
    assert with_values("{}", {"a": "ü"}) == '{"a": "ü"}'
    assert with_values('{"a":"\\u00fc"}', {"b": "ü"}) == '{"a":"\\u00fc","b":"\\u00fc"}'.replace(',"b"', ', "b"')
    assert with_values('{"a": 1}', {"b": "\ud800"}) == '{"a": 1, "b": "\\ud800"}'


def review(tmp_path: Path, lines: tuple[str, ...] = LINES) -> Review:
    return open_tests(make_set(tmp_path, lines))


def placed(reviewed: Review, ident: str) -> tuple[int, str]:
    return next((row.number, row.seen) for row in reviewed.entries() if row.entry.id == ident)


def test_a_decision_touches_one_line_and_in_it_one_value(tmp_path: Path) -> None:
    reviewed = review(tmp_path)
    reviewed.change(*placed(reviewed, "t2"), Change(status="verified", fields={}))
    reviewed.change(*placed(reviewed, "照片"), Change(fields={"text": "页眉"}))
    reviewed.change(*placed(reviewed, "t8"), Change(status="rejected", fields={}))
    after = list(LINES)
    after[1] = after[1].replace("2.50]}}\r\n", '2.50]},"checked":"verified"}\r\n')
    after[5] = after[5].replace("头部", "页眉")
    after[8] = after[8].replace("null", '"rejected"')
    assert reviewed.path.read_bytes().decode() == "".join(after)
    for says in ("照片", "t8", "t2"):
        done = reviewed.undo()
        assert done is not None or says
    assert reviewed.path.read_bytes().decode() == "".join(LINES)
    assert reviewed.undo() is None


def test_every_field_of_every_type_can_be_edited_and_what_would_break_a_test_is_refused(tmp_path: Path) -> None:
    reviewed = review(tmp_path)
    samples = {"text": "new", "math": "x^2", "number": 1, "switch": None, "choice": "italic"}
    for row in reviewed.entries():
        for field in row.entry.fields:
            if field.name in ("id", "page"):
                continue
            value = not field.value if field.control == "switch" else samples[field.control]
            reviewed.change(*placed(reviewed, row.entry.id), Change(fields={field.name: value}))
            now = next(each for each in reviewed.entries() if each.number == row.number)
            assert next(each.value for each in now.entry.fields if each.name == field.name) == value
    before = reviewed.path.read_bytes()
    broken = {"t1": {"text": " "}, "t2": {"max_diffs": 50}, "t4": {"math": ""}, "t6": {"format": "blue"}}
    broken |= {"t7": {"marker": "a b"}, "t3": {"max_diffs": -1}, "t8": {"max_repeats": None}, "照片": {"first_n": "9"}}
    for ident, fields in broken.items():
        with pytest.raises(FieldError) as refused:
            reviewed.change(*placed(reviewed, ident), Change(status="verified", fields=fields))
        assert refused.value.field in (*fields, "before", "after"), refused.value.message
    with pytest.raises(FieldError, match="no field 'checked'"):
        reviewed.change(*placed(reviewed, "t1"), Change(fields={"checked": "x"}))
    assert reviewed.path.read_bytes() == before


def test_broken_lines_are_named_and_stay_and_a_test_that_is_wrong_can_be_rejected_only(tmp_path: Path) -> None:
    lines = ('{"pdf": "x.pdf", no\n', '{"id": "w", "type": "order", "pdf": "x", "page": 1, "before": ""}\n', LINES[0])
    lines += (LINES[0].replace("quick", "slow"), '["no object"]\n', '{"id": 1, "type": "x"}\n')
    reviewed = review(tmp_path, lines)
    problems = {row.number: row.entry.problem for row in reviewed.entries()}
    assert problems[1].startswith("tests.jsonl, line 1: not JSON") and problems[5].endswith("not an object")
    assert "line 4: the id is that of line 3" in problems[4] and "unknown test type 'x'" in problems[6]
    assert "after" in problems[2] and problems[3] == ""
    assert reviewed.counts() == {"broken": 2, "unreviewed": 4}
    number, seen = placed(reviewed, "w")
    with pytest.raises(FieldError, match=r"needs .?after"):
        reviewed.change(number, seen, Change(status="verified", fields={}))
    with pytest.raises(DatasetError, match="line 1: not JSON"):
        reviewed.change(1, reviewed.entries()[0].seen, Change(status="verified", fields={}))
    reviewed.change(number, seen, Change(status="rejected", fields={}))
    assert reviewed.path.read_bytes().decode().splitlines()[1].endswith('"before": "", "checked": "rejected"}')


def test_lines_that_others_add_or_change_are_kept_and_the_same_line_is_never_overwritten(tmp_path: Path) -> None:
    reviewed = review(tmp_path)
    first, second = placed(reviewed, "t1"), placed(reviewed, "t3")
    others = '{"pdf": "a/fox.pdf", "page": 1, "id": "new", "type": "baseline"}\n'
    theirs = others + "".join(LINES).replace('"left" : "Apple"', '"left" : "Pear"')
    reviewed.path.write_text(theirs, newline="")
    assert reviewed.change(*first, Change(status="verified", fields={})) == 2
    with pytest.raises(ConflictError, match="another tab or program"):
        reviewed.change(*second, Change(fields={"left": "Mine"}))
    assert reviewed.path.read_bytes().decode() == theirs.replace(
        '"max_diffs": 1}', '"max_diffs": 1, "checked": "verified"}'
    )
    reviewed.path.write_text(theirs.replace("quick", "slow"), newline="")
    with pytest.raises(ConflictError, match="cannot be undone"):
        reviewed.undo()
    assert reviewed.path.read_bytes().decode() == theirs.replace("quick", "slow")


def test_permissions_stay_and_leftovers_of_a_dead_process_go(tmp_path: Path) -> None:
    file = make_set(tmp_path)
    file.chmod(0o640)
    leftover = tmp_path / ".loupe-0123456789abcdef.tmp"
    leftover.write_text("half")
    reviewed = open_tests(file)
    reviewed.change(*placed(reviewed, "t1"), Change(status="verified", fields={}))
    assert b"verified" in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o640
    assert not leftover.exists()


def test_two_processes_writing_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"".join(b"%d-\n" % number for number in range(40)))
    handles = [LineFile(file), LineFile(file)]

    def write(handle: LineFile, parity: int) -> None:
        for number in range(parity, 40, 2):
            handle.replace(number + 1, b"%d-\n" % number, b"%d+\n" % number)

    threads = [threading.Thread(target=write, args=(handle, parity)) for parity, handle in enumerate(handles)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read_bytes() == b"".join(b"%d+\n" % number for number in range(40))


def test_what_others_write_right_after_us_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"a\nb\n")
    handle, rename = LineFile(file), os.rename

    def rename_and_change(*names: str, **folders: int) -> None:
        rename(*names, **folders)
        file.write_bytes(b"A\nB\n")

    monkeypatch.setattr(os, "rename", rename_and_change)
    handle.replace(1, b"a\n", b"A\n")
    assert handle.refresh() and handle.lines == (b"A\n", b"B\n")


def keep_saving(path: str) -> None:
    """What gets killed: decide one test after the other, and say so when it is saved."""
    reviewed = open_tests(Path(path))
    for status in ("verified", "rejected", "unreviewed") * 1000:
        for row in reviewed.entries():
            reviewed.change(row.number, row.seen, Change(status=status, fields={}))
            os.write(1, f"{row.number} {status}\n".encode())


def test_after_a_kill_in_the_middle_of_saving_the_file_is_whole_and_has_all_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    chance = random.Random(7)
    lines = tuple(LINES[0].replace('"t1"', f'"k{number}"') for number in range(100))
    file = make_set(tmp_path, lines)
    for _ in range(3):
        file.write_text("".join(lines))
        command = [
            sys.executable,
            "-c",
            f"from tests.web.test_review_lines import keep_saving; keep_saving({str(file)!r})",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
            assert process.stdout is not None
            told = [process.stdout.readline()]
            time.sleep(chance.uniform(0.0, 0.15))
            process.send_signal(signal.SIGKILL)
            told += process.stdout.readlines()
        acknowledged = dict(line.decode().split() for line in told if line.endswith(b"\n"))
        rows = open_tests(file).entries()
        assert len(acknowledged) >= 1 and len(rows) == len(lines)
        differing = [row for row in rows if row.entry.status != acknowledged.get(str(row.number), "unreviewed")]
        assert len(differing) <= 1, "one change at most was made and not yet acknowledged"
        original = {json.loads(line)["id"]: json.loads(line) for line in lines}
        for row, line in zip(rows, file.read_text().splitlines(), strict=True):
            record = json.loads(line)
            record.pop("checked", None)
            assert record == original[row.entry.id]
        assert [path.name for path in tmp_path.glob(".*.tmp")] == []
