"""Keys: whatever a server echoes, whatever is printed or stored, the key is not in it, and no child inherits it."""

from __future__ import annotations

import ast
import asyncio
import base64
import html
import json
import os
import subprocess
import sys
import threading
import urllib.parse
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loupe import helpers
from loupe.benchmarks.shared.equations.rendering.renderer import _Loop
from loupe.cli.shared import local_page
from loupe.engines.chat.settings import Settings
from loupe.engines.openai import open_engine
from loupe.engines.registry import engine_module, load_profile
from loupe.errors import LoupeError
from loupe.helpers import for_children, for_own_program
from loupe.runs.folder import RunFolder
from loupe.scoring.pool import ScorePool
from loupe.types import Output, Prediction, Request, Sample
from tests.support.asking import ASK, settings
from tests.support.chat_server import Reply, chat_server, in_thread
from tests.support.command_line import loupe, make_folder, trusted

KEY = 'sk-se/cr"et-123456'
JSON_KEY = json.dumps(KEY)[1:-1]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("LOUPE_API_KEY", KEY)


def everything(script: Any, *, query: str = "", **options: Any) -> str:
    """All that the engine hands over for one question, answer or error, as text."""

    async def main() -> str:
        async with chat_server(script, **options) as server:
            url = server.url + query
            try:
                async with open_engine(settings(url)) as engine:
                    output = await engine.predict(ASK)
                    return msgspec.json.encode([output, dict(engine.facts)]).decode()
            except LoupeError as error:
                return f"{error} {error.message} {error.hint}"

    return asyncio.run(main())


def chat(content: str, **more: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}], **more}).encode()


def stream(*pieces: str) -> bytes:
    events = [json.dumps({"choices": [{"delta": {"content": piece}}]}) for piece in pieces]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text=f"you sent {KEY}"),
        Reply(text="a", message={"reasoning": f"they sent {KEY}"}),
        Reply(text="a", message={"extra": {KEY: [KEY]}}),
        Reply(text="a", finish_reason=KEY),
        Reply(raw=chat("a", echo={"Authorization": f"Bearer {KEY}"})),
        Reply(raw=chat(KEY).replace(b"/", b"\\/")),
        Reply(raw=chat("XX").replace(b"XX", "".join(f"\\u{ord(char):04x}" for char in KEY).encode())),
        Reply(raw=stream("a" + KEY[:9], KEY[9:])),
        Reply(raw=f"no JSON: {KEY}".encode()),
        Reply(raw=b" " * 150 + f"no JSON, and an excerpt that ends within {KEY}".encode()),
        Reply(raw=b"no JSON", content_type=f"text/{KEY}"),
        Reply(raw=json.dumps({"error": KEY}).encode()),
        Reply(status=400, error=f"refused {KEY}"),
        Reply(status=401, error=f"unknown {KEY}"),
        Reply(status=307, raw=b"", headers={"Location": f"http://elsewhere/?key={KEY}"}),
        Reply(status=500, error=KEY),
    ],
)
def test_a_key_that_the_server_echoes_is_neither_stored_nor_shown(reply: Reply) -> None:
    found = everything(reply)
    assert found
    assert KEY not in found and JSON_KEY not in found and KEY[:12] not in found


def encoded(before: str = "", after: str = "", *, url: bool = False) -> str:
    code = base64.urlsafe_b64encode if url else base64.b64encode
    return code(f"{before}{KEY}{after}".encode()).decode()


#: Encodings of the key, each with what is left of it if only the key itself is looked for.
ENCODED = [
    encoded(),
    encoded("Bearer "),
    encoded("Bearer ", url=True),
    *(encoded("x" * before + ":", "\n" * after) for before in range(3) for after in range(3)),
    KEY.encode().hex(),
    KEY.encode().hex().upper(),
    urllib.parse.quote(KEY, safe=""),
    html.escape(KEY),
]


@pytest.mark.parametrize("written", ENCODED)
def test_a_key_that_the_server_echoes_in_a_simple_encoding_is_not_seen_either(written: str) -> None:
    core = written[6:-6]
    for reply in (
        Reply(text=f"you sent {written}"),
        Reply(raw=chat(written).replace(b"/", b"\\/")),
        Reply(raw=stream("a" + written[:9], written[9:])),
        Reply(status=401, error=f"Authorization: {written}"),
        Reply(status=400, raw=f"headers: {written}".encode()),
    ):
        found = everything(reply)
        assert "[key]" in found and core not in found.replace("\\/", "/"), found


def test_a_key_that_the_server_lists_as_its_model_is_not_stored() -> None:
    assert KEY[:12] not in everything("a", models={"data": [{"id": KEY}]})


def test_an_answer_without_the_key_stays_as_it_is_and_a_short_key_is_no_reason_to_change_a_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOUPE_API_KEY", "test")
    assert "a test of [key] and test" in everything(Reply(text="a test of [key] and test"))
    assert "refused [key]" in everything(Reply(status=400, error="refused test"))


def test_a_key_in_the_query_of_the_address_is_not_seen_either() -> None:
    found = everything(Reply(text="echo hidden-9876"), query="?api-key=hidden-9876&v=echo")
    assert "echo [key]" in found and "hidden-9876" not in found


def test_a_profile_is_stored_without_the_queries_of_its_addresses() -> None:
    one = msgspec.convert({"kind": "openai", "base_url": "https://h/v1?api-key=hidden"}, Settings)
    assert one.stored()["base_url"] == "https://h/v1"
    two = msgspec.convert({"kind": "openai", "base_url": ["h/v1?a=hidden", "https://i/v1"]}, Settings)
    assert two.stored()["base_url"] == ["h/v1", "https://i/v1"]
    assert two.stored()["image"] == "fit2048"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    make_folder(tmp_path)
    return tmp_path


def test_a_key_in_an_address_is_in_no_file_and_in_no_line_of_a_run(here: Path) -> None:
    refuse = Reply(status=401, raw=b'{"error": {"message": "expired: hidden-9876"}}')
    query = "?api-key=hidden-9876"
    with in_thread(["alpha", refuse]) as server:
        words = ("--base-url", server.url + query, "-n", "1", "--name", "server")
        done = loupe("run", "mydocs", *words, cwd=here)
    assert done.returncode == 4
    assert f"to continue: loupe run mydocs --base-url '{server.url}?api-key=...'" in done.stderr
    files = [path.read_bytes() for path in (here / "runs").rglob("*") if path.is_file()]
    assert RunFolder.open(here / "runs/server/mydocs").info.profile["base_url"] == [server.url]
    assert not any(b"hidden" in content for content in [*files, done.stderr.encode(), done.stdout.encode()])


def test_engine_show_leaves_the_query_of_an_address_out(here: Path) -> None:
    (here / "loupe.toml").write_text('[engines.mine]\nkind = "openai"\nbase_url = "https://h/v1?api-key=hidden"\n')
    trusted(here / "loupe.toml")
    for more in ((), ("--json",)):
        done = loupe("engine", "show", "mine", *more, cwd=here)
        assert "https://h/v1" in done.stdout and "hidden" not in done.stdout


#: Keys of Loupe, of others, and one whose name says nothing.
KEYS = {
    **{"LOUPE_API_KEY": KEY, "OPENAI_API_KEY": "sk-o", "HF_TOKEN": "hf-1", "LOUPE_SERVE_API_KEY": "s"},
    **{"MISTRAL_API_KEY": "m", "VLLM_API_KEY": "v", "UV_PUBLISH_TOKEN": "u", "MYVAR_X": "x"},
}
LISTING = "import os, json; print(json.dumps(dict(os.environ)))"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def environment_of(name: str, **keys_of_profile: Any) -> dict[str, str]:
    """The environment that a user's program or function sees."""

    async def main() -> str:
        _, profile = load_profile(name, keys_of_profile)
        async with engine_module(profile.kind).open_engine(profile) as engine:
            output: Output = await engine.predict(Request(id="a", prompt="environment"))
            return output.text

    found: dict[str, str] = json.loads(asyncio.run(main()))
    return found


USERS_OWN = [
    ("command", {"command": [sys.executable, "-c", LISTING, "{prompt}"]}),
    ("python", {"function": "tests.support.engine_functions:environment"}),
]


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(("kind", "profile"), USERS_OWN)
def test_a_users_program_or_function_gets_no_variable_but_the_usual_and_those_of_its_profile(
    kind: str, profile: dict[str, Any]
) -> None:
    found = environment_of(kind, **profile)
    assert not KEYS.keys() & found.keys() and found["PATH"] and found["DO_NOT_TRACK"] == "1"
    found = environment_of(kind, **profile, pass_env=["HF_TOKEN", "MYVAR_X", "DO_NOT_TRACK"])
    assert {name: found[name] for name in KEYS.keys() & found.keys()} == {"HF_TOKEN": "hf-1", "MYVAR_X": "x"}


@pytest.mark.usefixtures("keys")
def test_what_helpers_get_is_a_list_of_names_and_an_installer_gets_the_password_of_its_own_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = {"CUDA_VISIBLE_DEVICES": "1", "OMP_NUM_THREADS": "2", "https_proxy": "http://p", "SSL_CERT_FILE": "c"}
    for name, value in {**usual, "UV_INDEX_MINE_PASSWORD": "w", "npm_config_registry": "r", "VLLM_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert usual.items() <= for_children().items() and usual.items() <= for_own_program().items()
    for group in (*helpers._GROUPS, ""):
        found = helpers.environment(*filter(None, [group]))
        assert not KEYS.keys() & found.keys(), group
        assert helpers.OFF.items() <= found.items()
        assert ("UV_INDEX_MINE_PASSWORD" in found, "npm_config_registry" in found) == (group == "uv", group == "npm")
        assert ("VLLM_PORT" in found) == (group == "servers")
    for name, value in helpers.OFF.items():
        monkeypatch.setenv(name, f"not {value}")
    for found in (for_children(), for_own_program(), helpers.environment()):
        assert all(found[name] == f"not {value}" for name, value in helpers.OFF.items()), "what the user sets wins"


@pytest.mark.parametrize(
    ("name", "passes"),
    [
        *((name, True) for name in ("SGLANG_NUM_RESERVED_DECODE_TOKENS", "VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE")),
        *((name, True) for name in ("SGLANG_INIT_NEW_TOKEN_RATIO", "MINERU_DEVICE_MODE", "CC", "LD_PRELOAD")),
        *(
            (name, False)
            for name in ("VLLM_TOKEN", "SGLANG_API_TOKENS", "VLLM_TOKEN_X", "MINERU_API_KEY", "HF_HUB_TOKEN")
        ),
        *((name, False) for name in ("DOCLING_SERVE_API_KEY", "SGLANG_SECRETS", "PADDLE_PDX_PASSWORD")),
    ],
)
def test_a_count_of_tokens_is_no_key_and_a_token_is(name: str, passes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "7")
    assert (name in for_children("servers")) == passes


def test_relative_places_are_those_of_the_working_folder_wherever_a_helper_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "tessdata").mkdir()
    (tmp_path / "bin/asks").write_text('#!/bin/sh\necho "$TESSDATA_PREFIX $PWD"\n')
    (tmp_path / "bin/asks").chmod(0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "./bin:/usr/bin:/bin")
    monkeypatch.setenv("TESSDATA_PREFIX", "tessdata")
    for words in (["asks"], ["./bin/asks"]):
        assert helpers.said_by(words).stdout == f"{tmp_path}/tessdata /\n"
    given = {"HF_HOME": "./new", "TORCHINDUCTOR_FX_GRAPH_CACHE": "1", "XDG_CACHE_HOME": "./x", "HF_HUB_CACHE": "~/hub"}
    for name, value in {**given, "MY_DATA": "a/b"}.items():
        monkeypatch.setenv(name, value)
    found = for_children("servers", passed=["MY_DATA"])
    assert {name: found[name] for name in given} == given | {"HF_HOME": f"{tmp_path}/new"}
    assert found["MY_DATA"] == "a/b", "what is handed on stays as it is"


HIDDEN = (
    *("CUDA_MYTOKEN", "KMP_ACCESSKEY", "ORT_PRIVATEKEY", "LC_MYSECRETX", "MALLOC_CRED", "NCCL_PASSPHRASE", "CUDA_PAT"),
    *("TORCH_JWT", "TRITON_PWD", "MKL_BEARER", "FLAGS_cookie", "OMP_PASS", "GEM_CREDS", "HF_HUB_PAT", "RAY_PW"),
    *("HF_DATASETS_SIGNATURE", "TRANSFORMERS_SESSIONID", "RAY_MYSECRET", "VLLM_TOKENS", "SGLANG_TOKEN2", "GEM_X"),
    *("MINERU_MODEL_VLM_SERVER_URL", "MINERU_LLM_AIDED_BASE_URL", "DOCLING_URI"),
    *("FLAGS_myAuth", "NVIDIA_PAT2_X", "LC_X", "MALLOC_X"),
)
COUNTS = (
    *("VLLM_MAX_TOKENS_PER_EXPERT", "SGLANG_NUM_TOKENS", "OMP_PLACES", "NCCL_P2P_LEVEL", "VLLM_TOKENIZER_POOL"),
    *("LC_ALL", "MALLOC_ARENA_MAX", "CUDA_PATH", "TORCH_COMPILE_DEBUG", "RAY_ADDRESS", "RAY_AUTH_TOKEN"),
)


def test_no_family_of_variables_hands_on_a_name_that_may_be_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HIDDEN + COUNTS:
        monkeypatch.setenv(name, "x")
    found = helpers.environment(*(group for group in helpers._GROUPS if group not in helpers._KEYED))
    assert (found.keys() & set(HIDDEN), set(COUNTS) - found.keys()) == (set(), set())


#: Where a process may start without saying what it gets: it is a child of one that has been told.
INHERITS = {"engines/environments/readers/kraken.py", "engines/environments/readers/ocrmypdf.py"}
STARTERS = frozenset({"Popen", "create_subprocess_exec", "create_subprocess_shell", "check_output", "check_call"})


def test_every_process_starts_with_an_environment_of_the_one_list() -> None:
    root = Path(helpers.__file__).parent
    found = set()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            called, owner = node.func.attr, ast.unparse(node.func.value)
            assert not (owner == "os" and called.startswith(("system", "popen", "spawn", "posix_spawn", "exec"))), name
            assert (owner, called) != ("os.environ", "clear"), f"{name} takes the variables of every thread away"
            starts = called in STARTERS or (owner == "subprocess" and called in ("run", "call"))
            if starts and name not in INHERITS:
                assert "env" in {word.arg for word in node.keywords}, f"{name}:{node.lineno} passes everything on"
                found.add(name)
    assert {"helpers.py", "servers/server.py", "data/hub/katex.py", "engines/environments/making.py"} <= found


def kept_meanwhile(done: threading.Event, lost: list[str]) -> None:
    while not done.wait(0.0002):
        lost += KEYS.keys() - os.environ.keys()


@pytest.mark.usefixtures("keys")
def test_this_process_keeps_its_variables_while_a_browser_opens_an_address_without_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "browser").write_text('#!/bin/sh\necho noise\nenv > seen\necho "$1" > asked\n')
    (tmp_path / "browser").chmod(0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BROWSER", "./browser %s")
    (tmp_path / "webbrowser.py").write_text("raise SystemExit('imported')")
    lost: list[str] = []
    watch = threading.Thread(target=kept_meanwhile, args=(done := threading.Event(), lost))
    watch.start()
    local_page._open("http://127.0.0.1:1/?token=t")
    done.set()
    watch.join()
    seen = (tmp_path / "seen").read_text()
    assert not lost and not any(f"{name}=" in seen for name in KEYS) and "BROWSER=" in seen
    assert (tmp_path / "asked").read_text() == "http://127.0.0.1:1/?token=t\n"
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("keys")
def test_what_the_loop_of_the_equation_browser_starts_gets_no_key(tmp_path: Path) -> None:
    loop = _Loop()
    loop.temporary = tmp_path

    async def main() -> dict[str, str]:
        given = {**os.environ, "PW_LANG_NAME": "python"}
        words = (sys.executable, "-c", LISTING)
        process = await asyncio.create_subprocess_exec(*words, env=given, stdout=subprocess.PIPE)
        return dict(json.loads((await process.communicate())[0]))

    found = loop.run_until_complete(main())
    loop.close()
    assert not KEYS.keys() & found.keys()
    assert (found["PW_LANG_NAME"], found["TMPDIR"], found["DO_NOT_TRACK"]) == ("python", str(tmp_path), "1")


SCORER = """
import os
from loupe.types import Benchmark, Measure, Sample, Score

def load(root):
    yield Sample(id="a", truth="")

def score(sample, prediction):
    seen = [name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN")) or name == "MYVAR_X"]
    return [Score(measure="seen", counts=(float(len(seen)), 1.0))]

benchmark = Benchmark(title="t", version="1", task="text", measures=(Measure(name="seen"),), load=load, score=score)
"""


@pytest.mark.usefixtures("keys")
def test_a_scorer_does_not_get_any_key(tmp_path: Path) -> None:
    (tmp_path / "spy.py").write_text(SCORER)
    with ScorePool(str(tmp_path / "spy.py"), jobs=1) as pool:
        scores = pool.submit(Sample(id="a"), Prediction(sample="a")).result(timeout=60)
    assert (scores.error, scores.scores[0].counts) == ("", (0.0, 1.0))
