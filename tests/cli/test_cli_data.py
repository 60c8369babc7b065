"""`loupe data` and `loupe setup` as a person types them, against a hub on loopback."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from loupe.cli.data import _root as data_root
from loupe.data.extras import install_hint
from tests.support.chat_server import in_thread
from tests.support.command_line import READER, command, complaint, environment, loupe
from tests.support.hub_server import COMMIT, Fault, hub_server


def picture(width: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, 20), "white").save(buffer, "PNG")
    return buffer.getvalue()


def ocrbench(count: int = 4) -> bytes:
    """Our own questions in the layout in which OCRBench is published."""
    kinds = ("Regular Text Recognition", "Scene Text-centric VQA", "Key Information Extraction")
    table = pa.table(
        {
            "dataset": ["svt", "STVQA", "FUNSD", "svt"][:count],
            "question": [f"what is written here, {number}?" for number in range(count)],
            "question_type": [kinds[number % 3] for number in range(count)],
            "answer": [[f"word {number}"] for number in range(count)],
            "image": [{"bytes": picture(30 + number), "path": None} for number in range(count)],
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


HUB = {"echo840/OCRBench": {"README.md": b"card", "data/test-00000-of-00001.parquet": ocrbench()}}
ANSWER = (
    READER
    + """
def answer(request):
    return "It says word " + request.prompt.split(", ")[1].rstrip("?")
"""
)


def here(tmp_path: Path, url: str = "http://127.0.0.1:9", **more: str) -> dict[str, str]:
    """An environment with its own store and hub, and nobody's token."""
    return {
        "LOUPE_DATA": str(tmp_path / "store"),
        "HF_ENDPOINT": url,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_TOKEN": "",
        "HF_HUB_OFFLINE": "",
        **more,
    }


def test_a_data_set_is_fetched_listed_verified_and_found(tmp_path: Path) -> None:
    with hub_server(HUB) as hub:
        done = loupe("data", "get", "ocrbench", "--json", cwd=tmp_path, env=here(tmp_path, hub.url))
    assert done.returncode == 0, done.stderr
    (facts,) = json.loads(done.stdout)
    assert (facts["revision"], facts["files"]) == (COMMIT, 1)
    assert "all checked; echo840/OCRBench at" in done.stderr and "licence:" in done.stderr
    listed = json.loads(loupe("data", "list", "--json", cwd=tmp_path, env=here(tmp_path)).stdout)
    assert {item["id"]: item["state"] for item in listed if item["state"] != "no"} == {"ocrbench": "yes"}
    where = loupe("data", "where", "ocrbench", cwd=tmp_path, env=here(tmp_path)).stdout.strip()
    assert Path(where) == Path(facts["folder"]) == tmp_path / "store" / "ocrbench"
    checked = loupe("data", "verify", cwd=tmp_path, env=here(tmp_path))
    assert (checked.returncode, checked.stdout) == (0, "") and "1 of 1 file right, as fetched from" in checked.stderr
    assert "ocrbench: 4 samples, and the published ocrbench has 1,000" in checked.stderr


def test_a_pack_that_calls_itself_a_published_set_is_not_taken_for_it(tmp_path: Path) -> None:
    parquet = tmp_path / "ocrbench/data/test-00000-of-00001.parquet"
    parquet.parent.mkdir(parents=True)
    parquet.write_bytes(ocrbench())
    assert loupe("data", "pack", "./ocrbench", "-o", "plain.tar", cwd=tmp_path, env=here(tmp_path)).returncode == 0
    # It claims the repository and the commit of the published set, and brings a note of its own that it is from there.
    (tmp_path / "ocrbench/.loupe-origin").write_text(f"hub {'0' * 64}")
    with tarfile.open(tmp_path / "plain.tar") as tar:
        manifest = json.loads(tar.extractfile("loupe-data.json").read())
    manifest |= {"repo": "echo840/OCRBench", "revision": COMMIT, "fetched": "2026-01-01T00:00:00+00:00"}
    (tmp_path / "ocrbench/loupe-data.json").write_text(json.dumps(manifest))
    assert loupe("data", "pack", "./ocrbench", "-o", "pack.tar", cwd=tmp_path, env=here(tmp_path)).returncode == 0
    taken = loupe("data", "unpack", "pack.tar", cwd=tmp_path, env=here(tmp_path))
    assert taken.returncode == 0 and "4 samples, and the published ocrbench has 1,000" in taken.stderr
    for state, origin, said in (("from a pack", "pack", "came with a pack"), ("origin unknown", "unknown", "unknown")):
        done = loupe("data", "list", cwd=tmp_path, env=here(tmp_path))
        assert state in done.stdout and "not proven to be the published set" in done.stderr
        checked = loupe("data", "verify", cwd=tmp_path, env=here(tmp_path))
        assert checked.returncode == 0 and said in checked.stderr and "file right" not in checked.stderr
        store = tmp_path / "store/ocrbench"
        remedy = f"published set; to fetch that: mv {store} {store}.old && loupe data get ocrbench\n"
        assert remedy in checked.stderr
        (facts,) = json.loads(loupe("data", "verify", "--json", cwd=tmp_path, env=here(tmp_path)).stdout)
        assert facts["origin"] == origin and len(facts["sizes"]) == 1
        # The same folder under a manifest that was changed, or copied from elsewhere, is of unknown origin.
        (tmp_path / "store/ocrbench/loupe-data.json").write_text(json.dumps(manifest | {"fetched": "today"}))
    assert remedy in loupe("data", "get", "ocrbench", cwd=tmp_path, env=here(tmp_path)).stderr


def test_the_name_of_a_data_set_wins_over_a_folder_and_a_path_over_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUPE_DATA", str(tmp_path / "store"))
    for name in ("ocrbench", "letters", "store/mine", "mine"):
        Path(name).mkdir(parents=True)
    store = tmp_path / "store"
    # Also where the store has none: whoever looks for the published set is not shown another folder.
    assert data_root("ocrbench") == store / "ocrbench" and data_root("mine") == store / "mine"
    assert data_root("./ocrbench") == data_root("ocrbench/") == Path("ocrbench") and data_root("./mine") == Path("mine")
    assert data_root("letters") == Path("letters")


def test_a_run_finds_what_was_fetched_and_asks_no_hub(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(ANSWER)
    with hub_server(HUB) as hub:
        assert loupe("data", "get", "ocrbench", cwd=tmp_path, env=here(tmp_path, hub.url)).returncode == 0
        asked = len(hub.requests)
        words = ["run", "ocrbench", "-e", "python:reader.py:answer", "--json"]
        done = loupe(*words, cwd=tmp_path, env=here(tmp_path, hub.url))
        assert len(hub.requests) == asked
    assert done.returncode == 0, done.stderr
    assert '"value": 4' in done.stdout


def test_a_run_without_data_asks_no_hub_and_says_what_to_type(tmp_path: Path) -> None:
    with hub_server(HUB) as hub:
        done = loupe("run", "ocrbench", "-e", "rapidocr", cwd=tmp_path, env=here(tmp_path, hub.url))
        assert hub.requests == []
    error, hint = complaint(done)
    assert done.returncode == 2 and hint == "download it: loupe data get ocrbench" and "OCRBench" in error


def test_the_prepared_form_gives_the_same_score(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(ANSWER)
    (tmp_path / "copy" / "data").mkdir(parents=True)
    (tmp_path / "copy/data/test-00000-of-00001.parquet").write_bytes(ocrbench())
    done = loupe("data", "prepare", "ocrbench", "--data", "copy", "--to", "form", cwd=tmp_path, env=here(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "form/images/00003.jpg").is_file()
    found = []
    for data in ("copy", "form"):
        words = ["run", "ocrbench", "-e", "python:reader.py:answer", "--data", data, "--name", data]
        assert loupe(*words, cwd=tmp_path, env=here(tmp_path)).returncode == 0
        result = json.loads((tmp_path / "runs" / data / "ocrbench" / "result.json").read_text())
        found.append((result["measures"], result["slices"]))
    assert found[0] == found[1]
    assert found[0][0]["score"]["value"] == 4


def test_a_data_set_travels_to_a_machine_without_network(tmp_path: Path) -> None:
    with hub_server(HUB) as hub:
        loupe("data", "get", "ocrbench", cwd=tmp_path, env=here(tmp_path, hub.url))
    packed = loupe("data", "pack", "ocrbench", "-o", "o.tar", cwd=tmp_path, env=here(tmp_path))
    assert packed.returncode == 0, packed.stderr
    assert packed.stdout.split()[1] == "o.tar" and len(packed.stdout.split()[0]) == 64
    there = here(tmp_path) | {"LOUPE_DATA": str(tmp_path / "other")}
    assert loupe("data", "unpack", "o.tar", cwd=tmp_path, env=there).returncode == 0
    assert loupe("data", "verify", "ocrbench", cwd=tmp_path, env=there).returncode == 0
    assert (tmp_path / "other/ocrbench/data/test-00000-of-00001.parquet").read_bytes() == ocrbench()
    error, hint = complaint(loupe("data", "unpack", "o.tar", cwd=tmp_path, env=there))
    assert "is there already" in error and hint.startswith("mv ")


def test_a_changed_file_is_named_and_how_to_bring_it_back(tmp_path: Path) -> None:
    file = tmp_path / "store/ocrbench/data/test-00000-of-00001.parquet"
    with hub_server(HUB) as hub:
        loupe("data", "get", "ocrbench", cwd=tmp_path, env=here(tmp_path, hub.url))
        file.write_bytes(file.read_bytes()[:-1] + b"?")
        done = loupe("data", "verify", "ocrbench", cwd=tmp_path, env=here(tmp_path, hub.url))
        assert done.returncode == 2
        assert f"{file}: changed" in done.stdout
        assert "hint: remove the changed files, then download them again: loupe data get NAME" in done.stderr
        file.unlink()
        assert loupe("data", "get", "ocrbench", cwd=tmp_path, env=here(tmp_path, hub.url)).returncode == 0
    assert file.read_bytes() == ocrbench()


def test_a_dry_run_says_how_much_it_is(tmp_path: Path) -> None:
    with hub_server(HUB) as hub:
        words = ["data", "get", "ocrbench", "--dry-run", "--json"]
        (facts,) = json.loads(loupe(*words, cwd=tmp_path, env=here(tmp_path, hub.url)).stdout)
        assert hub.asked("/resolve/") == []
    assert (facts["bytes"], facts["files"]) == (len(ocrbench()), 1)
    assert not (tmp_path / "store").exists()


def test_setup_gets_what_it_can_and_names_the_rest(tmp_path: Path) -> None:
    with hub_server(HUB) as hub:
        words = ["setup", "--only", "chartqa", "--only", "ocrbench"]
        done = loupe(*words, cwd=tmp_path, env=here(tmp_path, hub.url))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-2:] == ["error: not fetched: chartqa", "hint: download it: loupe data get chartqa"]
    assert (tmp_path / "store/ocrbench/loupe-data.json").is_file()


def test_the_token_is_sent_and_never_printed_or_stored(tmp_path: Path) -> None:
    secret = "hf_averysecretone"
    with hub_server(HUB, token=secret) as hub:
        env = here(tmp_path, hub.url, HF_TOKEN=secret, LOUPE_DEBUG="1")
        done = loupe("data", "get", "ocrbench", cwd=tmp_path, env=env)
        wrong = loupe("data", "get", "ocrbench", "--to", "x", cwd=tmp_path, env=env | {"HF_TOKEN": "hf_wrongone"})
    assert done.returncode == 0, done.stderr
    assert wrong.returncode == 2 and "accept its terms" in wrong.stderr
    spoken = done.stdout + done.stderr + wrong.stdout + wrong.stderr
    assert secret not in spoken and "hf_wrongone" not in spoken
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert secret.encode() not in stored


def test_ctrl_c_keeps_what_is_here_and_the_next_call_goes_on(tmp_path: Path) -> None:
    files = {"data/test-0.parquet": b"a" * 50_000, "data/test-1.parquet": b"b" * 50_000}
    fault = Fault(method="GET", path="test-1", silent=60)
    with hub_server({"echo840/OCRBench": files}, [fault]) as hub:
        words = command("data", "get", "ocrbench", "--jobs", "1")
        env = environment(tmp_path, here(tmp_path, hub.url))
        process = subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not fault.fired and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (130, "interrupted\n")
        listed = json.loads(loupe("data", "list", "--json", cwd=tmp_path, env=here(tmp_path)).stdout)
        assert {item["id"] for item in listed if item["state"] == "begun"} == {"ocrbench"}
        before = len(hub.requests)
        assert loupe("data", "get", "ocrbench", cwd=tmp_path, env=here(tmp_path, hub.url)).returncode == 0
        assert ["test-1" in item.path for item in hub.requests[before:] if "/resolve/" in item.path] == [True]


def test_a_killed_download_is_continued_in_the_middle_of_its_file(tmp_path: Path) -> None:
    data = bytes(range(256)) * 20_000
    fault = Fault(method="GET", path="test-0", cut=3_000_000, silent=60)
    part_of = tmp_path / "store/ocrbench.partial/.parts"
    with hub_server({"echo840/OCRBench": {"data/test-0.parquet": data}}, [fault]) as hub:
        env = environment(tmp_path, here(tmp_path, hub.url))
        process = subprocess.Popen(command("data", "get", "ocrbench"), cwd=tmp_path, env=env)
        deadline = time.monotonic() + 60
        while sum(path.stat().st_size for path in part_of.glob("*")) < 2_900_000 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.wait(30)
        assert loupe("data", "get", "ocrbench", cwd=tmp_path, env=here(tmp_path, hub.url)).returncode == 0
        (_, again) = hub.asked("/resolve/")
        assert 2_900_000 <= int(again.range.removeprefix("bytes=").removesuffix("-")) <= 3_000_000
    assert (tmp_path / "store/ocrbench/data/test-0.parquet").read_bytes() == data


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["data", "get", "ocrbanch"], "did you mean 'ocrbench'"),
        (["data", "get", "chartqa", "ocrbench", "--to", "x"], "one data set at a time"),
        (["data", "where", "nope"], "no data set 'nope'"),
        (["data", "verify"], "no data sets found"),
        (["data", "verify", "chartqa"], "loupe-data.json not found"),
        (["data", "pack", "chartqa"], "no such folder"),
        (["data", "unpack", "reader.py"], "not a pack"),
        (["data", "prepare", "sample_pages", "--to", "."], "is not empty"),
        (["data", "gett"], "did you mean 'get'"),
    ],
)
def test_mistakes_are_two_lines(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "reader.py").write_text(READER)
    done = loupe(*words, cwd=tmp_path, env=here(tmp_path))
    assert said in complaint(done)[0]
    assert done.returncode == 2


def test_the_sample_pages_can_be_prepared_too(tmp_path: Path) -> None:
    words = ["data", "prepare", "sample_pages", "--to", "form", "--limit", "3", "--json"]
    done = loupe(*words, cwd=tmp_path, env=here(tmp_path))
    assert json.loads(done.stdout) == {"folder": "form", "samples": 3}, done.stderr
    lines = (tmp_path / "form/metadata.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["idx"] for line in lines] == [0, 1, 2]


def test_a_program_is_given_each_image_of_a_parquet_file_as_a_file(tmp_path: Path) -> None:
    """Image after image is 30, 31, … pixels wide; the file it came in is told by its suffix."""
    (tmp_path / "copy/data").mkdir(parents=True)
    (tmp_path / "copy/data/test-00000-of-00001.parquet").write_bytes(ocrbench())
    (tmp_path / "size.py").write_text(
        "import sys, pathlib; from PIL import Image; name = sys.argv[1]; "
        "print(Image.open(name).size[0], pathlib.Path(name).suffix)"
    )
    profile = f'kind = "command"\ncommand = ["{sys.executable}", "size.py", "{{image}}"]\n'
    (tmp_path / "size.toml").write_text(profile)
    words = ["run", "ocrbench", "-e", "./size.toml", "--data", "copy", "--name", "size"]
    done = loupe(*words, cwd=tmp_path, env=here(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "runs/size/ocrbench/predictions.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["text"].strip() for line in lines) == [f"{30 + number} .png" for number in range(4)]


def test_a_server_is_sent_each_image_of_a_parquet_file_unchanged(tmp_path: Path) -> None:
    (tmp_path / "copy/data").mkdir(parents=True)
    (tmp_path / "copy/data/test-00000-of-00001.parquet").write_bytes(ocrbench())
    with in_thread("{image}") as server:
        words = ["run", "ocrbench", "--base-url", server.url, "--data", "copy", "--name", "sent"]
        done = loupe(*words, cwd=tmp_path, env=here(tmp_path))
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "runs/sent/ocrbench/predictions.jsonl").read_text().splitlines()
    sent = {json.loads(line)["text"] for line in lines}
    assert sent == {hashlib.sha256(picture(30 + number)).hexdigest()[:16] for number in range(4)}


def test_the_report_shows_images_of_a_parquet_file(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(ANSWER)
    (tmp_path / "copy/data").mkdir(parents=True)
    (tmp_path / "copy/data/test-00000-of-00001.parquet").write_bytes(ocrbench())
    words = ["run", "ocrbench", "-e", "python:reader.py:answer", "--data", "copy", "--name", "shown"]
    assert loupe(*words, cwd=tmp_path, env=here(tmp_path)).returncode == 0
    done = loupe("report", "runs/shown/ocrbench", "-o", "r.html", cwd=tmp_path, env=here(tmp_path))
    assert done.returncode == 0, done.stderr
    payloads = [
        gzip.decompress(base64.b64decode(found))
        for found in re.findall(r"H4sI[\w+/=]+", (tmp_path / "r.html").read_text())
    ]
    shown = [payload for payload in payloads if b"data:image/webp;base64," in payload and b"parquet" in payload]
    assert len(shown) == 4


def test_a_run_fetches_what_is_missing_only_when_told_to(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(ANSWER)
    words = ["run", "ocrbench", "-e", "python:reader.py:answer"]
    with hub_server(HUB) as hub:
        env = here(tmp_path, hub.url)
        assert loupe(*words, cwd=tmp_path, env=env).returncode == 2
        assert hub.requests == []
        done = loupe(*words, "--download", cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        asked = len(hub.requests)
        assert asked > 0
        assert loupe(*words, "--download", cwd=tmp_path, env=env).returncode == 0
        assert len(hub.requests) == asked


def test_download_and_data_contradict_each_other(tmp_path: Path) -> None:
    words = ["run", "ocrbench", "-e", "rapidocr", "--download", "--data", "."]
    assert complaint(loupe(*words, cwd=tmp_path, env=here(tmp_path)))[0] == "--download and --data cannot be combined"


def test_a_suite_fetches_what_it_can(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(ANSWER)
    words = ["run", "--suite", "core", "--skip-missing", "-e", "python:reader.py:answer", "--download", "--name", "it"]
    with hub_server(HUB) as hub:
        done = loupe(*words, cwd=tmp_path, env=here(tmp_path, hub.url))
    assert (tmp_path / "runs/it/ocrbench/result.json").is_file(), done.stderr
    assert "pubtabnet: apoidea/pubtabnet-html: no such data set" in done.stderr


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("huggingface_hub", ["data", "get", "ocrbench"]),
        ("pyarrow", ["run", "ocrbench", "-e", "rapidocr", "--data", "copy"]),
    ],
)
def test_without_the_extra_the_message_names_it(tmp_path: Path, package: str, words: list[str]) -> None:
    (tmp_path / "without" / package).mkdir(parents=True)
    (tmp_path / "without" / package / "__init__.py").write_text("raise ImportError('not here')")
    (tmp_path / "copy/data").mkdir(parents=True)
    (tmp_path / "copy/data/test-00000-of-00001.parquet").write_bytes(ocrbench())
    done = loupe(*words, cwd=tmp_path, env=here(tmp_path, PYTHONPATH=str(tmp_path / "without")))
    error, hint = complaint(done)
    assert (done.returncode, hint) == (4, install_hint("data")) and package in error


def test_a_hub_that_cannot_be_reached_has_one_exit_code(tmp_path: Path) -> None:
    offline = here(tmp_path, HF_HUB_OFFLINE="1", PATH="", npm_config_registry="http://127.0.0.1:9", HOME=str(tmp_path))
    commands = [
        "data get ocrbench",
        "data get ocrbench --dry-run",
        "setup --only ocrbench --only chartqa",
        "setup math",
    ]
    for words in commands:
        done = loupe(*words.split(), cwd=tmp_path, env=offline)
        assert done.returncode == 4, done.stderr
        assert "docs/install.md" not in done.stderr
