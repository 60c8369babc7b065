"""Which server is asked: the one that is written, else the one that a variable names, else the one on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from loupe.cli.shared.chosen_engines import choose_engines
from loupe.cli.shared.flags import Flags
from loupe.engines.chat.discovery import Addresses, addresses_of, as_found
from loupe.engines.chat.endpoints import GIVEN_KEY, NO_KEY, asked_at, key_for, key_hint, source_of
from loupe.engines.chat.http_failures import failure
from loupe.errors import EngineUnavailableError, UsageError
from loupe.helpers import for_own_program
from loupe.runs.folder import RunFolder
from tests.support.chat_server import ChatServer, in_thread
from tests.support.command_line import complaint, installed, loupe, make_folder, needs
from tests.support.embedding_server import embedding_server
from tests.support.report_runs import draw_page

URL = "http://gpu1:8000/v1"
#: As people have them: one key for a public API, one for a gateway of their own.
KEYS = {"OPENAI_API_KEY": "sk-of-openai-0123456789", "GATEWAY_KEY": "of-the-gateway-0123456789"}


def test_what_is_written_comes_first_then_the_variables_then_this_machine() -> None:
    variables = {"VLLM_BASE_URL": "gpu2:8000", "OPENAI_BASE_URL": URL}
    assert addresses_of("http://here:1/v1", variables) == Addresses(("http://here:1/v1",))
    assert addresses_of(["a:1", " ", "b:1"], variables) == Addresses(("a:1", "b:1"))
    assert addresses_of("auto", variables) == Addresses(("auto",))
    assert addresses_of(as_found(URL), variables).variable == ""
    assert addresses_of("", variables) == Addresses((URL,), "OPENAI_BASE_URL")
    assert addresses_of([], {"VLLM_BASE_URL": "gpu2:8000"}) == Addresses(("http://gpu2:8000/v1",), "VLLM_BASE_URL")
    assert addresses_of([], {"LOUPE_BASE_URL": "auto", **variables}).are_named is False
    assert addresses_of([], {}) == Addresses()


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("LOUPE_BASE_URL", "htp:/gpu1", "LOUPE_BASE_URL 'htp:/gpu1' is not an address such as"),
        ("OPENAI_BASE_URL", "http://me:hunter2@gpu1", "OPENAI_BASE_URL holds a user name or password"),
        ("VLLM_BASE_URL", "http://gpu1:99999", "VLLM_BASE_URL 'http://gpu1:99999' is not an address such as"),
        ("OLLAMA_HOST", "gpu1:99999", "OLLAMA_HOST 'gpu1:99999' is not an address such as"),
        ("OLLAMA_HOST", "http://me:hunter2@gpu1", "OLLAMA_HOST holds a user name or password"),
        ("OLLAMA_HOST", "::1:x]", "OLLAMA_HOST '::1:x]' is not an address such as"),
        ("OLLAMA_HOST", "ftp://gpu1", "OLLAMA_HOST 'ftp://gpu1:11434/v1' is not an address such as"),
    ],
)
def test_a_variable_without_an_address_is_named_and_shows_no_password(variable: str, text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        addresses_of((), {variable: text})
    assert raised.value.message.startswith(said) and "hunter2" not in raised.value.message
    assert raised.value.hint.endswith(f"unset {variable}")
    assert addresses_of("http://here:1/v1", {variable: text}).urls == ("http://here:1/v1",)


OPENAI, GATEWAY, OURS = *KEYS.values(), "for-loupe-0123456789"


@pytest.mark.parametrize(
    ("named", "own", "usual", "ours"),
    [
        (Addresses((URL,)), GATEWAY, OPENAI, GATEWAY),
        (Addresses((URL,), "LOUPE_BASE_URL"), NO_KEY, NO_KEY, OURS),
        (Addresses((URL,), "OPENAI_BASE_URL"), OPENAI, OPENAI, OURS),
        (Addresses((URL,), "VLLM_BASE_URL"), NO_KEY, NO_KEY, OURS),
        (Addresses((URL,), "OLLAMA_HOST"), NO_KEY, NO_KEY, OURS),
        (Addresses((as_found(URL),)), NO_KEY, NO_KEY, NO_KEY),
        (Addresses(("auto",), "LOUPE_BASE_URL"), NO_KEY, NO_KEY, NO_KEY),
        (Addresses(), NO_KEY, NO_KEY, NO_KEY),
    ],
)
def test_a_key_goes_to_the_host_that_it_is_for(named: Addresses, own: str, usual: str, ours: str) -> None:
    """`own`: a profile names GATEWAY_KEY; `usual`: it names none; `ours`: LOUPE_API_KEY is there as well."""
    assert key_for(named, "GATEWAY_KEY", KEYS) == own
    assert key_for(named, "", KEYS) == usual
    assert key_for(named, "GATEWAY_KEY", KEYS | {"LOUPE_API_KEY": OURS}) == ours


def test_a_key_that_the_profile_wants_is_missed_only_where_it_would_be_sent() -> None:
    assert key_for(Addresses((URL,), "VLLM_BASE_URL"), "GATEWAY_KEY", {}) == NO_KEY
    with pytest.raises(EngineUnavailableError, match="no API key in the environment variable GATEWAY_KEY"):
        key_for(Addresses((URL,)), "GATEWAY_KEY", {})


@pytest.mark.parametrize(
    ("key", "variable"), [("LOUPE_API_KEY", "LOUPE_BASE_URL"), ("OPENAI_API_KEY", "OPENAI_BASE_URL")]
)
def test_a_key_with_a_server_of_its_own_goes_to_no_other(key: str, variable: str) -> None:
    def sent(url: str, home: str) -> str:
        return key_for(Addresses((url,)), "", {key: "k", variable: home})

    assert sent(URL, "") == sent(URL, "auto") == sent(URL, URL) == sent("GPU1:8000", URL) == "k"
    assert sent("https://api.example.com:443/v1", "https://api.example.com/other") == "k"
    for other in ("http://gpu2:8000/v1", "https://gpu1:8000/v1", "gpu1:8001", "gpu1.example.com:8000"):
        assert sent(other, URL) == NO_KEY
    assert sent(URL, "htp:/gpu1") == NO_KEY
    assert key_for(Addresses((URL, "gpu2:8000")), "", {key: "k", variable: URL}) == NO_KEY
    # Who types a key means the server of this command.
    assert key_for(Addresses((URL,)), "", {key: "k", variable: "gpu2", "LOUPE_GIVEN_API_KEY": "typed"}) == "typed"


def test_the_key_of_a_profile_stays_with_its_own_server(here: Path) -> None:
    profiles = here / ".config/loupe/engines"
    profiles.mkdir(parents=True)
    env = {"LOUPE_BASE_URL": "http://gpu1:8000/v1", "LOUPE_API_KEY": OURS, "GATEWAY_KEY": GATEWAY}
    with in_thread("alpha") as own, in_thread("alpha") as other:
        (profiles / "mine.toml").write_text(f'kind = "openai"\nbase_url = "{own.url}"\napi_key_env = "GATEWAY_KEY"\n')
        for words in (("run", "mydocs", "-e", "mine"), ("engine", "test", "mine")):
            for more in ((), ("--base-url", other.url)):
                done = loupe(*words, *more, *(("--fresh",) if words[0] == "run" else ()), cwd=here, env=env)
                assert done.returncode in (0, 3), done.stderr
        keys = [{each.headers.get("authorization") for each in (*at.requests, *at.others)} for at in (own, other)]
    assert keys == [{f"Bearer {GATEWAY}"}, {f"Bearer {NO_KEY}"}]


def test_a_key_of_the_command_is_for_the_one_engine_that_asks_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GIVEN_KEY, "sk-1")
    assert len(choose_engines(Flags(engine=("gemini", "tesseract")))) == 2
    assert len(choose_engines(Flags(engine=("olmocr", "rolmocr")))) == 2
    with pytest.raises(UsageError, match="gemini sets its own"):
        choose_engines(Flags(engine=("olmocr", "gemini")))
    assert GIVEN_KEY not in for_own_program()


@pytest.mark.parametrize(
    ("words", "option"),
    [(("--base-url", "http://127.0.0.1:9/v1"), "--base-url"), (("--api-key-file", "page.txt"), "--api-key-file")],
)
def test_one_address_or_key_is_not_for_an_engine_that_has_its_own(
    here: Path, words: tuple[str, ...], option: str
) -> None:
    (here / "page.txt").write_text("sk-1")
    done = loupe("run", "mydocs", "-e", "gemini", "-e", "olmocr", *words, cwd=here, env={"GEMINI_API_KEY": "g"})
    said = [line for line in done.stderr.splitlines() if line.startswith(("error", "hint"))]
    assert said == [
        f"error: {option} is for one server, but gemini sets its own",
        "hint: use a separate command for -e gemini",
    ]
    assert done.returncode == 2 and not (here / "runs").exists()


def test_further_questions_go_by_the_same_rule() -> None:
    assert asked_at({"base_url": f"{URL}, http://b/v1"}) == Addresses((URL,))
    assert asked_at({"base_url": URL, "base_url_from": "VLLM_BASE_URL"}) == Addresses((URL,), "VLLM_BASE_URL")
    assert not asked_at({"base_url": URL, "base_url_from": "found on this machine"}).are_named
    assert source_of(Addresses((URL,), "LOUPE_BASE_URL")) == {"base_url_from": "LOUPE_BASE_URL"}
    assert not asked_at({"base_url": URL, **source_of(Addresses(("auto",), "LOUPE_BASE_URL"))}).are_named


@pytest.fixture
def here(tmp_path: Path) -> Path:
    make_folder(tmp_path, count=2)
    draw_page(tmp_path / "page.png", "A page")
    (tmp_path / "page.txt").write_text("A page")
    for name in ("yes", "no", "todo"):
        (tmp_path / name).mkdir()
        draw_page(tmp_path / name / f"{name}.png", f"{name} page")
    (tmp_path / "todo/loupe.toml").write_text('[benchmark]\ntitle = "To do"\nversion = "1"\n')
    (tmp_path / "todo/samples.jsonl").write_text(
        '{"id": "p", "image": "todo.png", "task": "text", "reference": null, "truth": {"status": "draft"}}\n'
    )
    return tmp_path


COMPRESS = ("compress", "--image", "page.png", "--ground-truth", "page.txt", "--mode", "base", "-e")
COMMANDS = {
    "run": ("run", "mydocs"),
    "vlm": ("run", "mydocs", "-e", "vlm"),
    "openai": ("infer", "mydocs", "-e", "openai"),
    "profile": ("run", "mydocs", "-e", "glm-ocr", "--model", "test-model"),
    "ocr and text": ("run", "mydocs", "-e", "ocr_and_text"),
    "draft": ("draft", "todo", "-e", "vlm"),
    "load": ("load", "mydocs", "-e", "vlm", "--requests", "2", "--sweep", "1"),
    "engine test": ("engine", "test", "vlm"),
    "compress": (*COMPRESS, "openai"),
    "select": (
        "select",
        "--type",
        "invoice",
        "--phase",
        "a",
        "--positive",
        "yes",
        "--negative",
        "no",
        "--vlm",
        "test-model",
    ),
}


def ask(name: str, here: Path, server: ChatServer, env: Mapping[str, str]) -> str:
    """What the command says while it asks the server; fails where it asks another one or ends otherwise than well."""
    done = loupe(*COMMANDS[name], cwd=here, env=env)
    assert server.requests, done.stderr
    assert done.returncode in (0, 3), done.stderr
    return done.stderr


@pytest.mark.parametrize("name", [name for name in COMMANDS if installed([COMMANDS[name]])])
def test_every_command_asks_the_server_that_a_variable_names_and_says_so(here: Path, name: str) -> None:
    with in_thread("alpha", get={"/tokenize": {"tokens": [1, 2], "count": 2}}) as server:
        said = ask(name, here, server, {"VLLM_BASE_URL": server.url, **KEYS})
    assert f"asking {server.url}, named by VLLM_BASE_URL" in said
    assert said.count("named by") == 1
    seen = {request.headers.get("authorization") for request in (*server.requests, *server.others)}
    assert seen <= {None, f"Bearer {NO_KEY}"}


@needs("embed")
def test_embed_asks_the_server_that_a_variable_names(here: Path) -> None:
    assert loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=here).returncode == 0
    with embedding_server() as server:
        words = ("embed", "runs/python-reader.py_right/mydocs", "--no-regions")
        done = loupe(*words, cwd=here, env={"OPENAI_BASE_URL": server.url})
    assert done.returncode == 0, done.stderr
    assert f"asking {server.url}, named by OPENAI_BASE_URL" in done.stderr


def test_an_option_and_a_profile_that_name_a_server_keep_it(here: Path) -> None:
    profiles = here / ".config/loupe/engines"
    profiles.mkdir(parents=True)
    with in_thread("alpha") as ours, in_thread("alpha") as other:
        (profiles / "mine.toml").write_text(f'kind = "openai"\nbase_url = "{ours.url}"\n')
        env = {"LOUPE_BASE_URL": other.url, **KEYS}
        for words in (("-e", "vlm", "--base-url", ours.url), ("-e", "mine")):
            done = loupe("run", "mydocs", *words, cwd=here, env=env)
            assert done.returncode == 0 and "asking" not in done.stderr, done.stderr
        assert (len(ours.requests), other.requests, other.others) == (4, [], [])


@needs("serve")
def test_a_server_that_is_to_be_started_is_asked_and_no_other(here: Path) -> None:
    serve = ("--serve", "loupe:python:reader.py:right", "--server-port", "auto")
    with in_thread("wrong") as other:
        done = loupe("run", "mydocs", "-e", "vlm", *serve, cwd=here, env={"LOUPE_BASE_URL": other.url})
        assert done.returncode == 0, done.stderr
        for words in installed([COMPRESS]):
            done = loupe(*words, "vlm", *serve, cwd=here, env={"VLLM_BASE_URL": other.url})
            assert done.returncode == 0, done.stderr
        assert (other.requests, other.others) == ([], [])
    folder = RunFolder.open(here / "runs/vlm/mydocs")
    assert folder.info.facts["server_origin"] == "started" and "base_url_from" not in folder.info.facts


def test_a_wrong_variable_is_one_line_before_anything_is_made(here: Path) -> None:
    for words in installed([COMMANDS[name] for name in ("run", "vlm", "engine test", "compress")]):
        error, hint = complaint(loupe(*words, cwd=here, env={"OPENAI_BASE_URL": "http://gpu1:x"}))
        assert error == "OPENAI_BASE_URL 'http://gpu1:x' is not an address such as http://127.0.0.1:8000/v1"
        assert hint == "export OPENAI_BASE_URL=http://HOST:PORT/v1, or unset OPENAI_BASE_URL"
    assert not (here / "runs").exists()
    # Who reads here asks nobody.
    done = loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=here, env={"OPENAI_BASE_URL": "http://gpu1:x"})
    assert done.returncode == 0, done.stderr


def test_a_server_that_does_not_answer_is_named_with_its_variable(here: Path) -> None:
    error, _ = complaint(loupe(*COMMANDS["engine test"], cwd=here, env={"VLLM_BASE_URL": "http://127.0.0.1:9"}))
    assert error == "no server answers at http://127.0.0.1:9/v1, which VLLM_BASE_URL names"


def test_a_refused_key_names_the_variable_that_would_be_sent(here: Path) -> None:
    with in_thread("alpha", models=401) as server:
        error, hint = complaint(
            loupe(*COMMANDS["engine test"], cwd=here, env={"VLLM_BASE_URL": server.url, "OPENAI_API_KEY": OPENAI})
        )
    assert error == f"{server.url} refuses the key (HTTP 401)"
    assert "export LOUPE_API_KEY=KEY (OPENAI_API_KEY goes only with OPENAI_BASE_URL)" in hint


@pytest.mark.parametrize(
    ("named", "own", "environment", "hint"),
    [
        (Addresses((URL,)), "", {}, ", or export OPENAI_API_KEY=KEY"),
        (Addresses((URL,)), "", {"LOUPE_API_KEY": "k"}, ", or export LOUPE_API_KEY=KEY"),
        (Addresses((URL,)), "MINE", {"MINE": "k", "OPENAI_API_KEY": "k"}, ", or export MINE=KEY"),
        (Addresses((URL,)), "", {"LOUPE_GIVEN_API_KEY": "k"}, ""),
        (
            Addresses((URL,), "LOUPE_BASE_URL"),
            "",
            {"OPENAI_API_KEY": "k"},
            ", or export LOUPE_API_KEY=KEY (OPENAI_API_KEY goes only with OPENAI_BASE_URL)",
        ),
    ],
)
def test_a_refusal_says_which_key_would_be_sent(
    named: Addresses, own: str, environment: dict[str, str], hint: str
) -> None:
    assert key_hint(named, own, environment) == f"use --api-key-file FILE{hint}"
    refused = failure(401, b"", None, key_hint=key_hint(named, own, environment))
    assert refused.hint == f"use --api-key-file FILE{hint}"


def test_a_run_keeps_who_named_its_server(here: Path) -> None:
    with in_thread("alpha") as server:
        ask("vlm", here, server, {"OPENAI_BASE_URL": server.url})
    stored = json.loads((here / "runs/vlm/mydocs/run.json").read_bytes())
    assert (stored["facts"]["base_url"], stored["facts"]["base_url_from"]) == (server.url, "OPENAI_BASE_URL")


def test_doctor_names_the_variable_that_decides(here: Path) -> None:
    with in_thread("alpha") as server:
        found = {
            url: loupe("doctor", "--plain", cwd=here, env={"OPENAI_BASE_URL": url}).stdout
            for url in (server.url, "http://127.0.0.1:9", "htp:/gpu1")
        }
    assert f"OPENAI_BASE_URL\tyes\t{server.url} answers" in found[server.url]
    assert "http://127.0.0.1:9/v1 does not answer" in found["http://127.0.0.1:9"]
    assert "export OPENAI_BASE_URL=http://HOST:PORT/v1, or unset" in found["htp:/gpu1"]


@needs("serve")
def test_a_profile_that_starts_its_server_is_not_passed_on_to_another_one(here: Path) -> None:
    profiles = here / ".config/loupe/engines"
    profiles.mkdir(parents=True)
    (profiles / "mine.toml").write_text('kind = "openai"\nmodel = "m"\nserve = "vllm"\n')
    with in_thread("alpha") as server:
        error, hint = complaint(loupe("serve", "mine", "--port", "0", cwd=here, env={"LOUPE_BASE_URL": server.url}))
        assert (server.requests, server.others) == ([], [])
    assert error == "the profile needs its own server (vllm), which this command does not start" and "base_url" in hint
