"""A benchmark in a Python file of the user's: `loupe bench check FILE.py` names what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from PIL import Image

from loupe.cli import main
from tests.support.synthetic import write_prepared

LINES = """
import json
from loupe.metrics import character_errors
from loupe.types import Benchmark, Measure, Sample, Score

def load(root, split: str = "test"):
    for line in (root / f"{split}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield Sample(id=row["id"], images=(root / row["image"],), truth=row["text"])

def score(sample, prediction):
    return [Score(measure="cer", counts=character_errors(prediction.text.strip(), sample.truth))]

benchmark = Benchmark(
    title="Lines", version="1", task="text", prompt="Transcribe the line.",
    measures=(Measure(name="cer", higher_is_better=False),), load=load, score=score,
)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "test.jsonl").write_text('{"id": "a", "image": "a.png", "text": "order"}\n')
    Image.new("L", (8, 8), 255).save(tmp_path / "data" / "a.png")
    return tmp_path


def check(folder: Path, old: str = "", new: str = "", *, data: bool = True) -> int:
    (folder / "order.py").write_text(LINES.replace(old, new) if old else LINES)
    return main(["bench", "check", "order.py", *(["--data", "data"] if data else [])])


def test_a_right_benchmark_is_ready_to_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(folder) == 0
    assert "order.py: no problem found; loupe run order.py --data data" in capsys.readouterr().err
    assert main(["bench", "check", "order.py", "--data", "data", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": "order.py", "problems": []}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('measure="cer"', 'measure="wer"', "sample 'a': scoring its right answer: ValueError: measure 'wer' is not"),
        ('row["image"]', '"b.png"', "sample 'a': data/b.png: no such file"),
        ('version="1"', 'version="1", headline="wer"', "headline: no measure is called 'wer'"),
        ("        yield Sample", "        0 and Sample", "'NoneType' object is not iterable"),
        ('row["text"]', 'row["words"]', "order.py:9: KeyError: 'words'"),
        ("benchmark = ", "nothing = ", "order.py defines no `benchmark`"),
        ("        yield Sample", "        yield 5\n        yield Sample", "`load` gives int, and not Sample"),
        ('id=row["id"]', 'id=""', "a sample with the id '', which is no name"),
        ("import json", "import json, sys\nsys.exit(0)", "order.py:3: SystemExit: 0"),
        ('version="1"', "version=1", "version: 1 is not a text"),
    ],
)
def test_what_is_wrong_is_named(
    old: str, new: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(folder, old, new) == 2
    printed = capsys.readouterr()
    assert said in printed.out + printed.err and "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        ("import json", "import json, os\nos._exit(0)", "with exit code 0"),
        ("    for line", "    import os; os._exit(0)\n    for line", "with exit code 0"),
        ("    return [Score", "    raise SystemExit\n    return [Score", "with exit code 0"),
        ("    return [Score", "    import os; os.kill(os.getpid(), 9)\n    return [Score", "by signal 9"),
    ],
)
def test_a_file_that_ends_its_process_is_not_right(
    old: str, new: str, how: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(folder, old, new) == 2
    assert f"order.py ended the process that checked it, {how}" in capsys.readouterr().err


def test_without_its_data_the_option_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(folder, data=False) == 2
    assert "name the folder of its data: --data DIR" in capsys.readouterr().err
    assert main(["run", "order.py", "-e", "pdf_text"]) == 2
    assert "order.py:7: TypeError" in capsys.readouterr().err


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_file_that_ends_its_process_is_no_right_benchmark(
    folder: Path, capsys: pytest.CaptureFixture[str], end: str
) -> None:
    assert check(folder, "import json\n", f"import json, os\n{end}\n") == 2
    said = capsys.readouterr().err
    assert "order.py ended the process that checked it" in said
    assert "no problem found" not in said


def test_the_recipe_for_csv_of_the_page_reads_a_table(folder: Path) -> None:
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    [lines] = [block for block in blocks if block.startswith("# lines.py")]
    [recipe] = [block for block in blocks if block.startswith("import csv\n")]
    head, _, rest = lines.partition("def load(")
    (folder / "tables.py").write_text(head + recipe + rest[rest.index("\ndef score") :], encoding="utf-8")
    (folder / "data" / "test.csv").write_text('id,image,text\na,a.png,"a ""b"", c"\n', encoding="utf-8")
    assert main(["bench", "check", "tables.py", "--data", "data"]) == 0
    (folder / "data" / "test.csv").write_bytes(b"id,image,text\na,a.png,\xff\n")
    assert main(["bench", "check", "tables.py", "--data", "data"]) == 2


def test_a_mistake_in_score_is_said_once_with_the_names_that_exist(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f'{{"id": "{name}", "image": "a.png", "text": "order"}}\n' for name in "abc"]
    (folder / "data" / "test.jsonl").write_text("".join(lines))
    assert check(folder, 'Score(measure="cer"', 'Score(measure="wer"') == 2
    said = "sample 'a': scoring its right answer: ValueError: measure 'wer' is not one of the benchmark's: cer"
    assert capsys.readouterr().out.splitlines() == [said]


def test_an_installed_benchmark_is_checked_by_its_id(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_prepared("iam_lines", folder / "iam", 2)
    assert main(["bench", "check", "iam_lines", "--data", "iam"]) == 0
    assert "iam_lines: no problem found; loupe run iam_lines --data iam" in capsys.readouterr().err
    assert main(["bench", "check", "iam-lines", "--data", "data"]) == 2
    assert "no split 'test' of IAM lines here" in capsys.readouterr().out
    assert main(["bench", "check", "iam_linez"]) == 2
