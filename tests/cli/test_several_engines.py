"""Several engines with one command: each has a folder of its own, and the settings that it knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from loupe.cli.shared.chosen_engines import choose_engines
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.options import make_plans
from loupe.errors import UsageError
from tests.support.command_line import loupe, make_folder

TWO = ("-e", "python:reader.py:right", "-e", "python:reader.py:wrong")


def test_a_name_for_several_engines_begins_the_name_of_each(tmp_path: Path) -> None:
    make_folder(tmp_path)
    for more in ((), ("--fresh",)):
        done = loupe("run", "mydocs", *TWO, "--name", "two", *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    names = {file.parent.parent.name for file in tmp_path.glob("runs/*/mydocs/result.json")}
    assert names == {"two-python-reader.py_right", "two-python-reader.py_wrong"}


def test_one_engine_has_the_name_itself_and_repeats_count_on(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    plans = make_plans(str(folder), Flags(engine=("tesseract",), name="mine", repeats=2))
    assert [plan.name for plan in plans] == ["mine", "mine-repeat2"]
    plans = make_plans(str(folder), Flags(engine=("tesseract", "pdf_text"), name="two", repeats=2))
    assert [plan.name for plan in plans] == [
        *("two-tesseract", "two-tesseract-repeat2", "two-pdf_text", "two-pdf_text-repeat2")
    ]


def test_a_setting_goes_to_the_engines_that_have_it() -> None:
    flags = Flags(
        engine=("vlm", "tesseract"), base_url=("http://h:1/v1",), temperature=0.5, timeout=7.0, settings={"psm": 6}
    )
    (_, vlm), (_, tesseract) = choose_engines(flags)
    assert (vlm.base_url, vlm.temperature, vlm.timeout) == (["http://h:1/v1"], 0.5, 7.0)  # type: ignore[attr-defined]
    assert (tesseract.psm, tesseract.timeout) == (6, 7.0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("engines", "message"),
    [
        (("tesseract", "pdf_text"), "none of tesseract, pdf_text has a setting for --base-url, --temperature"),
        (("tesseract",), "engine 'tesseract' has no setting for --base-url"),
        (("tesserakt", "pdf_text"), "no engine 'tesserakt'; did you mean 'tesseract'?"),
    ],
)
def test_a_setting_that_no_engine_has_is_refused(engines: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as found:
        choose_engines(Flags(engine=engines, base_url=("http://h:1/v1",), temperature=0.5))
    assert found.value.message == message
