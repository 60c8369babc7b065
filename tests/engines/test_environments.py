"""Engines in environments of their own: made by uv from a folder, read in by processes that misbehave in every way."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from loupe.engines.environment import open_engine
from loupe.engines.environments import making
from loupe.engines.environments.places import LOCKS, READERS, Settings, installed, locked, made, root, wanted
from loupe.engines.registry import load_profile, packaged_profiles
from loupe.engines.shared.model_names import from_anywhere
from loupe.errors import (
    DownloadError,
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    LoupeError,
    MissingToolError,
    ProfileError,
    RejectedError,
    TransientEngineError,
    UntrustedError,
    UsageError,
)
from loupe.types import Output, PageSource, PdfPage, Request
from tests.support.command_line import complaint, loupe
from tests.support.made_up_package import make_profile, make_wheel, settings

ROOT = Path(__file__).parents[2]
PACKAGES = [path for path in packaged_profiles() if 'kind = "environment"\n' in path.read_text()]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of the tests, and uv that knows one folder and no index."""
    folder = tmp_path_factory.mktemp("environments")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("UV_FIND_LINKS", str(folder))
        patch.setenv("UV_NO_INDEX", "1")
        patch.setenv("TOP_SECRET_KEY", "x")
        yield folder


@pytest.fixture(scope="module")
def quill(home: Path) -> dict[str, object]:
    """The made-up engine, installed."""
    keys = make_profile(home)
    making.make(settings(keys))
    return keys


@pytest.fixture(scope="module")
def page(home: Path) -> Path:
    """A page as a picture."""
    Image.new("RGB", (60, 40), "white").save(home / "page.png")
    return home / "page.png"


def ask(profile: Settings, *prompts: str, page: PageSource) -> list[Output | BaseException]:
    """What the prompts give, one after the other, by one engine."""

    async def run() -> list[Output | BaseException]:
        found: list[Output | BaseException] = []
        async with open_engine(profile) as engine:
            for prompt in prompts:
                try:
                    found.append(await engine.predict(Request(id="p", prompt=prompt, images=(page,))))
                except EngineError as error:
                    found.append(error)
        return found

    return asyncio.run(run())


def facts_of(profile: Settings) -> dict[str, str]:
    """What the engine says of itself."""

    async def run() -> dict[str, str]:
        async with open_engine(profile) as engine:
            return dict(engine.facts)

    return asyncio.run(run())


def test_what_goes_wrong_costs_one_page(quill: dict[str, object], page: Path) -> None:
    words = ["crash", "a", "hang", "b", "memory", "c", "noise", "fork", "d"]
    found = ask(settings(quill, memory=1.0, timeout=3.0), *words, page=page)
    text = {word: each.text if isinstance(each, Output) else each for word, each in zip(words, found, strict=True)}
    assert isinstance(text["crash"], EngineError) and "SIGSEGV" in text["crash"].message
    assert isinstance(text["hang"], EngineTimeoutError)
    assert isinstance(text["memory"], EngineError) and "more than 1 GB of memory" in text["memory"].message
    # Half a surrogate pair is no character; noise on standard output and error disturbs nobody.
    assert {text[word] for word in ("a", "b", "c", "noise", "d")} == {"image page.png \ufffd"}
    assert text["fork"] in ("child", "image page.png \ufffd")


def test_no_worker_outlives_loupe(quill: dict[str, object], page: Path) -> None:
    code = f"""
import asyncio
from pathlib import Path
from loupe.engines.environment import open_engine
from loupe.types import Request
from tests.support.made_up_package import settings

async def run():
    async with open_engine(settings({quill!r})) as engine:
        ask = lambda prompt: engine.predict(Request(id="p", prompt=prompt, images=(Path({str(page)!r}),)))
        print((await ask("pid")).text, flush=True)
        await ask("hang")

asyncio.run(run())
"""
    root_folder = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root_folder, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        worker = int(run.stdout.readline())
        run.kill()
    for _ in range(600):
        if not is_running(worker):
            return
        time.sleep(0.1)
    pytest.fail("the worker is still there")


def is_running(process: int) -> bool:
    """Whether a process is there, and not only its entry in the table."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/status")
    return not (status.exists() and "zombie" in status.read_text())


def test_what_a_reader_says(quill: dict[str, object], page: Path) -> None:
    busy, refused, nothing, several, facts, lines, badbox, reach = ask(
        settings(quill, weights="downloaded from a hub"),
        "busy",
        "refused",
        "nothing",
        "list",
        "facts",
        "lines",
        "badbox",
        "reach 192.0.2.1",
        page=page,
    )
    assert isinstance(busy, TransientEngineError) and busy.rate and busy.message == "slow down"
    assert isinstance(refused, RejectedError) and refused.message == "no such language"
    assert refused.hint == ""  # That weights may be missing is said of an engine that cannot be loaded alone.
    assert isinstance(nothing, EngineError) and "invalid answer" in nothing.message
    assert isinstance(several, EngineError) and "for one page" in several.message
    assert isinstance(facts, EngineError) and "no answer" in facts.message
    assert isinstance(lines, Output) and lines.text == "above below"
    assert lines.response and lines.response["lines"][1] == ("above", 0.0, 0.1, 0.9, 0.2, 0.5)
    assert isinstance(badbox, EngineError)
    assert isinstance(reach, EngineError) and "192.0.2.1" in reach.message and "does not let" in reach.message


ODD_ANSWERS: list[dict[str, object] | list[str]] = [
    {"facts": {"a": "b"}},
    {"facts": {"a": "b"}, "text": "lost"},
    ["one", "two"],
    [],
    {"text": "x", "input_tokens": -5},
    {"text": "x", "output_tokens": 10**30},
    {"lines": [{"text": "x", "box": [[0, 0], [9, 9]]}], "size": [0, 100]},
    {"lines": [{"text": "x", "box": [[0, 0], [9, 9]]}], "size": [-100, 100]},
]


def test_an_odd_answer_is_an_error_and_no_empty_page(quill: dict[str, object], page: Path) -> None:
    whole: list[dict[str, object] | list[str]] = [["alone"], {"lines": [{"text": "flat", "box": [[0, 5], [9, 5]]}] * 2}]
    words = [f"answer {json.dumps(each)}" for each in (*ODD_ANSWERS, *whole)]
    *odd, alone, flat = ask(settings(quill), *words, page=page)
    for said, word in zip(odd, words, strict=False):
        assert type(said) is EngineError, f"{word}: {said}"
    assert isinstance(alone, Output) and alone.text == "alone" and alone.response is None
    assert isinstance(flat, Output) and flat.text == "flat\nflat"


def test_an_answer_too_many_goes_to_no_other_page(quill: dict[str, object], page: Path) -> None:
    forged, second, third = ask(settings(quill), "twice", 'answer {"text": "2"}', 'answer {"text": "3"}', page=page)
    assert isinstance(forged, Output) and forged.text == "forged"
    assert isinstance(second, EngineError) and "before it took the page" in second.message
    assert isinstance(third, Output) and third.text == "3"


def test_a_worker_sees_nothing_of_loupe(quill: dict[str, object], page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (seen,) = ask(settings(quill, variables={"QUILL": "1"}), "seen", page=page)
    assert isinstance(seen, Output)
    assert "TOP_SECRET_KEY" not in seen.text and "'QUILL'" in seen.text
    assert "loupe." not in seen.text and str(Path(__file__).parents[2]) not in seen.text
    assert str(Path.cwd()) not in seen.text


def test_one_worker_for_each_gpu(quill: dict[str, object], page: Path) -> None:
    async def run() -> list[str]:
        async with open_engine(settings(quill, gpus="0, 3")) as engine:
            asking = (engine.predict(Request(id="p", prompt="gpu", images=(page,))) for _ in range(2))
            return sorted(each.text for each in await asyncio.gather(*asking))

    assert asyncio.run(run()) == ["0", "3"]
    assert settings(quill, gpus="0, 3").concurrency == 2 and settings(quill).concurrency == 1


def test_a_run_can_be_continued(quill: dict[str, object]) -> None:
    """What is recorded of an engine is the same every time: a run is only continued with the same facts."""

    first = facts_of(settings(quill))
    assert first == facts_of(settings(quill))
    assert first["quill"] == "1.0" and {"lock", "source", "python"} <= first.keys()


def test_forms_of_pages(quill: dict[str, object], page: Path, home: Path) -> None:
    import pypdfium2

    document = pypdfium2.PdfDocument.new()
    for _ in range(3):
        document.new_page(200, 300)
    document.save(home / "three.pdf")
    three = PdfPage(home / "three.pdf", 2)
    assert [each.text for each in ask(settings(quill), "", page=three) if isinstance(each, Output)] == [
        "page page.pdf \ufffd"
    ]
    whole = settings(quill, reads=["document"])
    second, again = ask(whole, "", "", page=three)
    assert isinstance(second, Output) and second.text == "page 2 of 3"
    assert isinstance(again, Output) and again.text == second.text
    (refused,) = ask(whole, "", page=page)
    assert isinstance(refused, RejectedError) and "page.png is an image file" in refused.message
    (drawn,) = ask(settings(quill, reads=["image"]), "", page=three)
    assert isinstance(drawn, Output) and drawn.text.startswith("image page.png")


def test_missing_weights_are_named(quill: dict[str, object], page: Path) -> None:
    profile = settings(quill, options={"missing": "/weights"}, weights="downloaded from a hub")
    with pytest.raises(EngineUnavailableError, match=r"reader.py:\d+: FileNotFoundError: no weights") as caught:
        ask(profile, "a", page=page)
    assert caught.value.hint == "weights: downloaded from a hub; loupe engine install quill --weights"


def test_not_installed_is_said(quill: dict[str, object], page: Path) -> None:
    with pytest.raises(MissingToolError, match="quill is not installed") as caught:
        ask(settings(quill, python=">=3.10"), "a", page=page)
    assert caught.value.hint == "run: loupe engine install quill"


def test_no_key_comes_to_what_is_installed(
    quill: dict[str, object], page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOP_SECRET_KEY", "kept-from-packages")
    monkeypatch.setenv("UV_INDEX_MINE_PASSWORD", "for-uv-alone")
    profile = settings(quill, environment="curious")
    record = making.make(profile)
    assert record.python.startswith("3.")
    assert isinstance(ask(profile, "a", page=page)[0], Output)
    seen = (wanted(profile).folder / "seen").read_text()
    assert "PATH" in seen and "kept-from-packages" not in seen

    program = tmp_path / "uv"
    names = "' '.join(name for name in os.environ if name[-4:] in ('_KEY', 'WORD'))"
    program.write_text(f"#!{sys.executable} -I\nimport os, sys\nsys.exit({names})\n")
    program.chmod(0o755)
    with pytest.raises(LoupeError) as caught:
        making._run([str(program)], tmp_path, lambda line: None, 2)
    assert "UV_INDEX_MINE_PASSWORD" in caught.value.message and "TOP_SECRET_KEY" not in caught.value.message


def test_an_environment_that_lies_elsewhere_is_let_go(home: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    root().mkdir(parents=True, exist_ok=True)
    (root() / "afar-0123456789ab").symlink_to(tmp_path)
    making.remove("afar")
    assert (tmp_path / "kept").is_dir() and not (root() / "afar-0123456789ab").is_symlink()


def test_only_the_locked_file_is_installed(home: Path, quill: dict[str, object]) -> None:
    lock = home / "wrong.txt"
    lock.write_text("quill==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n")
    profile = settings(quill, lock=str(lock), environment="wrong")
    with pytest.raises(LoupeError, match="could not make") as caught:
        making.make(profile)
    assert "not the one that was locked" in caught.value.hint
    assert not wanted(profile).folder.exists()


def test_without_a_lock_one_is_made(home: Path, quill: dict[str, object]) -> None:
    profile = settings({**quill, "lock": "", "environment": "free"})
    record = making.make(profile)
    assert locked((wanted(profile).folder / "locked.txt").read_bytes()) == {"quill": {"1.0"}}
    assert making.make(profile) == record  # Nothing is made twice.
    before = facts_of(profile)
    with (wanted(profile).folder / "locked.txt").open("a") as lock:
        lock.write("# what else the packages may bring at another time\n")
    assert [key for key, value in facts_of(profile).items() if value != before[key]] == ["lock"]
    assert making.remove("free") > 0 and "free" not in {name for name, _, _ in made()}


@pytest.mark.parametrize(
    "line",
    [
        "-i https://evil.example/packages",
        "quill @ https://evil.example/quill.whl",
        "-e .",
        "quill==1.0",
        "quill==1.0 --hash=md5:00",
        "quill>=1.0 --hash=sha256:" + "0" * 64,
    ],
)
def test_a_lock_names_nothing_but_packages(home: Path, quill: dict[str, object], line: str) -> None:
    lock = home / "odd.txt"
    lock.write_text(line + "\n")
    with pytest.raises(ProfileError, match="with digests"):
        wanted(settings(quill, lock=str(lock)))


@pytest.mark.parametrize("name", ["../x", "a/b", ".", "", "A", "x" * 65])
def test_names_lead_nowhere_else(quill: dict[str, object], name: str) -> None:
    with pytest.raises(Exception, match="environment = "):
        settings(quill, environment=name)


def test_a_line_of_a_lock_is_read_in_one_go() -> None:
    with pytest.raises(ValueError, match="with digests"):
        locked(b"quill==1.0" + b" " * 1_000_000 + b"x")


@pytest.mark.parametrize("key", ["memory", "dpi", "startup_timeout"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_numbers_that_are_none_are_refused(quill: dict[str, object], key: str, value: float) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"{key} = "):
        settings(quill, **{key: value})


def test_a_lock_for_other_versions_is_refused(home: Path, quill: dict[str, object]) -> None:
    with pytest.raises(ProfileError, match=r"has 1.0 of quill, and packages say 2.0"):
        wanted(settings(quill, packages=["quill==2.0"]))
    with pytest.raises(Exception, match="no exact version"):
        settings(quill, packages=["quill>=1"])


def test_a_python_that_is_not_here(quill: dict[str, object]) -> None:
    with pytest.raises(LoupeError, match="could not make") as caught:
        making.make(settings(quill, python=">=3.98,<3.99"))
    assert "install a Python" in caught.value.hint


@pytest.mark.parametrize(
    ("said", "kind", "advice"),
    [
        ("error: Failed to fetch: `http://nowhere/a/`", DownloadError, "check the network"),
        ("Hash mismatch for `a==1`", LoupeError, "do not use it"),
        ("No interpreter found for Python 3.9", LoupeError, "install a Python"),
        ("a==1 has no usable wheels", LoupeError, "the lock does not fit"),
    ],
)
def test_what_uv_complains_of_is_an_error_of_its_kind(said: str, kind: type[LoupeError], advice: str) -> None:
    found = making._failure(["Using CPython 3.11", said])
    assert type(found) is kind and advice in found.hint and found.message.endswith(said)


def test_uv_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(making, "find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match="uv, which makes environments, is not installed"):
        making.uv_command()


def test_from_nothing_to_a_score_with_two_commands(home: Path, tmp_path: Path) -> None:
    keys = make_profile(tmp_path) | {"environment": "project"}
    make_wheel(home)
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    (tmp_path / "quill.toml").write_text("\n".join(lines) + "\n")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'mine'\nversion = '1'\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    ours = {(each.name, each.version) for each in importlib.metadata.distributions()}
    more = {"VIRTUAL_ENV": str(tmp_path / "venv"), "PYTHONPATH": ""}

    installing = loupe("engine", "install", "quill.toml", cwd=tmp_path, env=more)
    assert installing.returncode == 0, installing.stderr
    assert "licence Made-up-1.0" in installing.stderr.splitlines()[0] and "starts in" in installing.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".config") == before
    assert ours == {(each.name, each.version) for each in importlib.metadata.distributions()}
    # Without uv and without a network: what is installed stays.
    (tmp_path / "bin").mkdir()
    running = loupe(
        "run", "sample_pages", "-e", "quill.toml", "--limit", "2", cwd=tmp_path, env={**more, "PATH": "bin"}
    )
    assert running.returncode == 0, running.stderr
    info = json.loads(next((tmp_path / "runs").rglob("run.json")).read_bytes())
    assert info["profile"]["packages"] == ["quill==1.0"] and "quill1.0" in json.dumps(info)
    again = loupe("engine", "remove", "project", cwd=tmp_path, env=more)
    assert again.returncode == 0 and "freed" in again.stderr
    gone = loupe("run", "sample_pages", "-e", "quill.toml", "--fresh", "--limit", "2", cwd=tmp_path, env=more)
    assert gone.returncode == 4 and complaint(gone)[1] == "run: loupe engine install project"


def test_a_strangers_engine_is_not_installed_without_trust(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = make_profile(tmp_path) | {"environment": "evil"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items() if key != "kind"]
    (tmp_path / "loupe.toml").write_text('[engines.evil]\nkind = "environment"\n' + "\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UntrustedError, match=r"installs and runs the packages quill==1.0 and .*reader.py"):
        load_profile("evil")
    refused = loupe("engine", "install", "evil", cwd=tmp_path)
    assert refused.returncode == 2 and "is not trusted" in refused.stderr
    assert "evil" not in {name for name, _, _ in made()}


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.stem)
def test_every_profile_is_whole(path: Path) -> None:
    """Its lock holds its packages, its reader is there, and it says what a user must know before installing it."""
    _, profile = load_profile(path.stem)
    assert isinstance(profile, Settings)
    environment = wanted(profile)
    assert environment.lock is not None and environment.download > 0
    assert (READERS / f"{profile.reader}.py").is_file()
    assert profile.licence and profile.title and profile.sources and profile.version == f"{path.stem}/1"
    assert not profile.options.keys() & set(profile.__struct_fields__), "-o NAME means one of the two"
    assert profile.choices.keys() <= profile.options.keys()
    pages = [(ROOT / "docs/engines" / name).read_text() for name in ("environments.md", "sdk.md")]
    row = f"| `{path.stem}` | {', '.join(profile.packages)} | {', '.join(profile.reads)} |"
    assert path.parent.name == "models" or any(row in page for page in pages)
    text = environment.lock.decode()
    assert "://" not in text and "--index" not in text and len(text) < 500_000
    signature: dict[str, Any] = profile.signature()
    assert all(name in signature["pkg"] for name in profile.pins)


def test_there_are_no_readers_or_locks_that_nobody_uses() -> None:
    profiles = [load_profile(path.stem)[1] for path in PACKAGES]
    assert {profile.reader for profile in profiles if isinstance(profile, Settings)} == {
        path.stem for path in READERS.glob("[a-z]*.py")
    }
    assert {profile.environment for profile in profiles if isinstance(profile, Settings)} == {
        path.stem for path in LOCKS.glob("*.txt")
    }


def test_places(home: Path, quill: dict[str, object]) -> None:
    environment, record = installed(settings(quill))
    assert environment.folder.parent == root() and record.size > 0 and root().is_relative_to(home)


def test_places_in_settings_mean_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "model").mkdir(parents=True)
    (tmp_path / "org" / "print.mlmodel").touch()
    (tmp_path / "eng").touch()
    unchanged = {"language": "eng", "model_name": "org/model", "server": "http://x/y.z", "model": "org/other", "n": 1}
    given = {**unchanged, "det_model_dir": "models/x", "more": ["./org", {"File": "a"}], "config_path": ""}
    assert from_anywhere(given) == {
        **unchanged,
        "det_model_dir": f"{tmp_path}/models/x",
        "more": [f"{tmp_path}/org", {"File": f"{tmp_path}/a"}],
        "config_path": "",
    }
    for bare in ({"model": "org/print.mlmodel"}, {"arguments": ["-m", "org/print.mlmodel"]}, {"model": "org/model"}):
        with pytest.raises(UsageError, match="lies in this folder") as caught:
            from_anywhere(bare)
        assert "write ./org/" in str(caught.value.hint)
