"""Pages that leave the machine: it is said where to, asked for once, and keys go to the service alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import loupe as package
from loupe.cli.shared.chosen_engines import agree_to_send
from loupe.engines.registry import load_profile
from loupe.errors import UsageError
from tests.support.command_line import at_a_terminal, loupe
from tests.support.service_server import TEXT, Answer, in_thread

#: No such host: whoever agrees gets no further.
REMOTE = """
kind = "http"
base_url = "https://ocr.invalid"
submit = { url = "/ocr", raw = true }
answer = { text = "text" }
"""
KEY = "sk-mistral-0123456789"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "remote.toml").write_text(REMOTE, encoding="utf-8")
    return tmp_path


def test_nothing_is_sent_to_a_service_unless_somebody_says_so(here: Path) -> None:
    words = ("run", "sample_pages", "-e", "remote.toml", "--limit", "1", "--json")
    done = loupe(*words, cwd=here)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines() == [
        "sends pages to ocr.invalid",
        "error: nothing was sent",
        "hint: use --yes to send pages without asking",
    ]
    done = loupe(*words, "--yes", cwd=here)
    assert done.returncode == 4 and "no service answers at https://ocr.invalid" in done.stderr


@pytest.mark.parametrize(("answer", "code"), [("n", 2), ("", 2), ("y", 4)])
def test_a_terminal_is_asked_once(here: Path, answer: str, code: int) -> None:
    ended, said = at_a_terminal(here, answer, "engine", "test", "remote.toml")
    assert ended == code and said.count("Send them? [y/N]") == said.count("sends pages to ocr.invalid") == 1
    assert ("nothing was sent" in said) == (code == 2)


def test_python_wants_it_said_too(here: Path) -> None:
    with pytest.raises(UsageError, match=r"sends pages to ocr\.invalid") as caught:
        package.run("sample_pages", here / "remote.toml", limit=1, runs=None, progress=False)
    assert caught.value.hint == "yes=True allows it"
    with pytest.raises(package.LoupeError, match="no service answers"):
        package.run("sample_pages", here / "remote.toml", limit=1, runs=None, progress=False, yes=True)


def test_a_server_that_the_user_has_named_is_said_and_not_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    one = load_profile("vlm", {"base_url": ["https://gpu.example/v1", "http://127.0.0.1:8000/v1"]})[1]
    agree_to_send([one], yes=False)
    assert capsys.readouterr().err == "sends pages to gpu.example\n"
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.example/v1")
    agree_to_send([load_profile("vlm")[1]], yes=False)
    assert capsys.readouterr().err == "sends pages to api.example\n"
    agree_to_send([load_profile("rapidocr")[1], load_profile("docling-serve")[1]], yes=False)
    assert capsys.readouterr().err == ""
    config = here / ".config/loupe/engines"
    config.mkdir(parents=True)
    (config / "far.toml").write_text(REMOTE, encoding="utf-8")
    monkeypatch.setenv("HOME", str(here))
    both = load_profile("ocr_and_text", {"ocr": "far", "base_url": "http://127.0.0.1:9/v1"})[1]
    assert both.services == ("ocr.invalid",) and "ocr.invalid" in both.hosts
    with pytest.raises(UsageError):
        agree_to_send([both], yes=False)


def test_engines_of_all_kinds_side_by_side(here: Path) -> None:
    """A service, a local engine and one that is not there: the run of each is its own, and no key is left anywhere."""
    (here / "gone.toml").write_text(REMOTE.replace("https://ocr.invalid", "http://127.0.0.1:9"), encoding="utf-8")
    faults = [Answer({"detail": f"slow down, {KEY}"}, 429, {"Retry-After": "0"})]
    with in_thread("mistral-ocr", {"Authorization": f"Bearer {KEY}"}, faults=faults) as server:
        text = (Path(package.__file__).parent / "engines/profiles/services/mistral-ocr.toml").read_text(
            encoding="utf-8"
        )
        (here / "service.toml").write_text(text.replace("https://api.mistral.ai", server.url), encoding="utf-8")
        words = ("run", "sample_pages", "--engines", "gone.toml,service.toml,pdf_text", "--limit", "5", "--plain")
        done = loupe(*words, cwd=here, env={"MISTRAL_API_KEY": KEY})
        assert done.returncode == 4 and "no service answers at http://127.0.0.1:9" in done.stderr, done.stderr
        assert "sends pages" not in done.stderr
        ranking = next(line for line in done.stdout.splitlines() if line.startswith("rank\t"))
        assert {"pages/s", "s/page", "cost/page"} <= set(ranking.split("\t"))
        begun = server.begun
        assert begun == 6  # five pages, one of them twice
        words = ("run", "sample_pages", "--engines", "service.toml,pdf_text", "--limit", "9", "--plain")
        again = loupe(*words, "--max-cost", "0.028", cwd=here, env={"MISTRAL_API_KEY": KEY})
        assert server.begun == begun + 2 and "needs --max-cost" in again.stderr + again.stdout, again.stderr
        refused = loupe("engine", "test", "service.toml", cwd=here, env={"MISTRAL_API_KEY": "sk-wrong-key-123"})
        assert refused.returncode == 4 and "refuses the key" in refused.stderr and "[key]" in refused.stderr
        assert f"POST {server.url}/v1/ocr: 401, " in refused.stderr
        assert "sk-wrong" not in refused.stderr and "MISTRAL_API_KEY" in refused.stderr
    run = here / "runs/service/sample_pages"
    records = [json.loads(line) for line in (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {record["text"] for record in records} == {TEXT} and records[0]["charged"] == {"pages": 1}
    loupe("report", run, "-o", "report.html", cwd=here)
    info = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert info["facts"]["host"] == "127.0.0.1" and "{secret:key}" in json.dumps(info["profile"])
    for file in [path for path in here.rglob("*") if path.is_file()]:
        assert KEY.encode() not in file.read_bytes(), file
    assert KEY not in done.stderr + done.stdout + again.stderr + again.stdout
