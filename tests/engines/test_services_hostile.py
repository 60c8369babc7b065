"""Services, profiles and keys that mean harm: nothing leaks, nothing is reached inside, everything has an end."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from loupe.engines.http import open_engine
from loupe.engines.registry import load_profile
from loupe.engines.services import calls, client, paths
from loupe.engines.services.client import ServiceClient
from loupe.engines.services.placeholders import address_of, open_elsewhere
from loupe.engines.services.settings import Settings
from loupe.engines.shared.local_settings import ENGINES, read_settings
from loupe.errors import (
    AccountError,
    EngineError,
    EngineUnavailableError,
    LoupeError,
    ProfileError,
    TransientEngineError,
    UsageError,
)
from loupe.types import Output, Request
from tests.support.service_server import Answer, ServiceServer, service

SECRET = "sk-live-0123456789abcdef"
MISTRAL = "https://api.mistral.ai/v1"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.png"
    Image.new("RGB", (40, 30), "white").save(path)
    return path


def ask(
    name: str, page: Path, monkeypatch: pytest.MonkeyPatch, *, prompt: str = "", changes: Any = None, **state: Any
) -> tuple[Output | BaseException, ServiceServer]:
    """What comes of one page at a stand-in, and the stand-in."""
    profile = load_profile(name, changes)[1]
    assert isinstance(profile, Settings)
    for variable in (profile.secrets | profile.optional_secrets).values():
        monkeypatch.setenv(variable, SECRET)

    async def main() -> tuple[Output | BaseException, ServiceServer]:
        async with service(name, **state) as server:
            given = load_profile(name, {"timeout": 60.0, **(changes or {}), "base_url": server.url})[1]
            async with open_engine(cast(Settings, given)) as engine:
                request = Request(id="a", images=(page,), prompt=prompt)
                (found,) = await asyncio.gather(engine.predict(request), return_exceptions=True)
                return found, server

    return asyncio.run(main())


# ---- addresses that a service names

INSIDE = [
    "file:///etc/passwd",
    "ftp://files.example/x",
    "gopher://x/",
    "javascript:alert(1)",
    "data:text/plain,x",
    "http://files.example/x",
    "http://api.mistral.ai/x",
    "http://169.254.169.254/latest/meta-data/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[::ffff:169.254.169.254]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[fe80::1]/",
    "https://[fd00:ec2::254]/",
    "https://[::1]:8443/",
    "https://[::]/",
    "https://127.0.0.1/",
    "https://0.0.0.0/",
    "https://10.1.2.3/",
    "https://192.168.0.1/",
    "https://100.64.0.1/",
    "https://224.0.0.1/",
    "https://localhost/",
    "https://2130706433/",
    "https://127.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.1./",
    "https://[::ffff:7f00:1]/",
    "https://key@files.example/",
    "https://api.mistral.ai@files.example/",
    "https://me:pw@api.mistral.ai/v1/jobs",
    "https://files.example:99999/",
    "https://files.example/\r\nX-Evil: 1",
    "https://files.example/a b",
    "https://files.examplé/",
    "http://[::1",
    "",
    "x" * 9000,
]


@pytest.mark.parametrize("address", INSIDE)
def test_nobody_is_sent_inside_or_to_another_scheme(address: str) -> None:
    with pytest.raises(EngineError):
        address_of(MISTRAL, "{submit:url}", lambda _: address)


@pytest.mark.parametrize("value", [None, True, {"a": 1}, ["https://files.example"]])
def test_an_address_that_is_no_text_is_none(value: Any) -> None:
    with pytest.raises(EngineError):
        address_of(MISTRAL, "{submit:url}", lambda _: value)


@pytest.mark.parametrize(
    ("address", "url", "is_own"),
    [
        ("https://api.mistral.ai/v1/jobs/1?a=%2F+b", "https://api.mistral.ai/v1/jobs/1?a=%2F+b", True),
        ("https://API.mistral.ai:443/x", "https://API.mistral.ai/x", True),
        ("https:///x", "https://api.mistral.ai/x", True),
        ("/jobs/1", "https://api.mistral.ai/jobs/1", True),
        ("https://api.mistral.ai:8443/x", "https://api.mistral.ai:8443/x", False),
        ("https://api.mistral.ai.evil.example/x", "https://api.mistral.ai.evil.example/x", False),
        ("//evil.example/x", "https://evil.example/x", False),
        ("https://evil.example\\@api.mistral.ai/x", "", False),
        ("https://s3.example/a?X-Amz-Signature=a%2Fb+c", "https://s3.example/a?X-Amz-Signature=a%2Fb+c", False),
    ],
)
def test_only_the_very_origin_of_the_profile_is_its_own(address: str, url: str, is_own: bool) -> None:
    try:
        found = address_of(MISTRAL, "{submit:url}", lambda _: address)
    except EngineError:
        assert not url
        return
    assert not url or (str(found.url), found.is_own) == (url, is_own)
    assert found.is_own == is_own


@pytest.mark.parametrize("ident", ["../../admin", "https://evil.example/", "a?b=c#d", "x\r\ny", "é", ".."])
def test_an_id_stays_one_part_of_a_path(ident: str) -> None:
    found = address_of(MISTRAL, "/jobs/{submit:id}/result", lambda _: ident)
    assert found.is_own and found.url.raw_path.startswith("/v1/jobs/") and found.url.raw_path.count("/") == 4
    assert not found.url.query_string and str(found.url).isprintable()


def test_a_name_that_stands_for_an_inner_address_is_not_asked() -> None:
    async def main() -> None:
        async with open_elsewhere(1) as session:
            for host in ("0x7f000001", "2130706433", "0177.1"):  # as the system's resolver reads them: 127.0.0.1
                with pytest.raises((EngineError, aiohttp.InvalidURL), match=r"inside this network|canonical"):
                    await session.get(f"https://{host}:1/")

    asyncio.run(main())


def test_a_poll_address_on_another_host_gets_no_key(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(body: Any) -> Any:
        return body | {"request_check_url": server_of[0].store({"status": "complete", "markdown": "from elsewhere"})}

    server_of: list[ServiceServer] = []
    real = ServiceServer.answer

    async def answer(self: ServiceServer, request: Any) -> Any:
        server_of[:] = [self]
        return await real(self, request)

    monkeypatch.setattr(ServiceServer, "answer", answer)
    found, server = ask("datalab", page, monkeypatch, change=change)
    assert isinstance(found, Output) and found.text == "from elsewhere"
    assert len(server.fetched) == 1 and SECRET not in str(server.fetched)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [Answer(None, status, {"Location": "https://evil.example/"})]
    found, server = ask("mistral-ocr", page, monkeypatch, faults=faults)
    assert isinstance(found, EngineUnavailableError) and "redirects" in found.message
    assert not server.fetched and server.begun == 1


def test_another_host_ends_no_run_and_refuses_no_key(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(self: ServiceServer, _: Any) -> Any:
        return self.elsewhere + "/gone?x=expired"

    monkeypatch.setattr(ServiceServer, "store", moved)
    found, _ = ask("reducto", page, monkeypatch, long=True)
    assert isinstance(found, TransientEngineError) and not isinstance(found, AccountError)
    assert "no longer has" in found.message


# ---- keys


@pytest.mark.parametrize("status", [200, 400, 401, 403, 429, 500])
def test_a_key_that_a_service_echoes_is_nowhere(status: int, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = f"you sent {SECRET} and {json.dumps(SECRET)}"
    body = {"detail": said, "pages": [{"markdown": said}], "usage_info": {"pages_processed": 1}, "x": SECRET}
    found, _ = ask("mistral-ocr", page, monkeypatch, faults=[Answer(body, status, {"X-Key": SECRET})])
    shown = found.message + found.hint + str(found) if isinstance(found, LoupeError) else repr(found)
    assert SECRET not in shown and "[key]" in shown


ESCAPED = "".join(f"\\u{ord(character):04x}" for character in SECRET)
IN_ESCAPES = [
    {"poll_faults": [Answer(f'{{"status": "failed", "error": "bad {ESCAPED}"}}'.encode())]},
    {"poll_faults": [Answer(f'{{"status": "complete", "{ESCAPED}": 1}}'.encode())]},
    {"poll_faults": [Answer(f'{{"status": "{ESCAPED}"}}'.encode())] * 9, "changes": {"timeout": 2.5}},
    {"faults": [Answer(f'{{"request_check_url": "https://10.0.0.1/{ESCAPED}"}}'.encode())]},
]


@pytest.mark.parametrize("state", IN_ESCAPES)
def test_a_key_that_comes_back_in_escapes_is_in_no_message(
    state: dict[str, Any], page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = ask("datalab", page, monkeypatch, **state)
    assert isinstance(found, LoupeError) and SECRET not in found.message + found.hint + str(found)


@pytest.mark.parametrize("value", ["sk-a\nX-Evil: 1", "sk a", "sk-é", "sk-\x00"])
def test_a_key_that_would_begin_another_header_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("os").environ, "MISTRAL_API_KEY", value.replace("\x00", "\x7f"))

    async def main() -> None:
        async with open_engine(cast(Settings, load_profile("mistral-ocr")[1])):
            raise AssertionError

    with pytest.raises(UsageError, match="MISTRAL_API_KEY is no key") as caught:
        asyncio.run(main())
    assert "sk" not in caught.value.message


def test_a_question_begins_no_header_and_no_field(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"headers": {"X-Ask": "{prompt}"}, "submit": {"url": "/ocr", "multipart": {"image_file": "{page}"}}}
    with pytest.raises(ProfileError):
        load_profile("rapidocr-api", changes)
    submit = {"url": "/ocr", "multipart": {"image_file": "{page}"}, "headers": {"X-Ask": "{prompt}"}}
    found, server = ask("rapidocr-api", page, monkeypatch, changes={"submit": submit}, prompt="a\r\nX-Evil: 1")
    assert isinstance(found, EngineError) and "line break" in found.message and server.begun == 0
    submit = {"url": "/ocr", "multipart": {"image_file": "{page}", "ask": "{prompt}"}}
    evil = 'x"\r\n--\r\nContent-Disposition: form-data; name="evil"\r\n\r\n{secret:key}{page:base64}'
    found, server = ask("rapidocr-api", page, monkeypatch, changes={"submit": submit}, prompt=evil)
    assert server.received[-1].fields == {"ask": evil}  # one field, and nothing in it is filled in again


# ---- answers


def test_an_answer_too_long_too_deep_or_too_fine_is_an_error(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_BYTES", 100_000)
    monkeypatch.setattr(calls, "MOST_PARTS", 10_000)
    bodies: dict[str, bytes] = {
        "longer than": b'{"pages": "' + b"x" * 200_000 + b'"}',
        "cannot be read as json": b"[" * 9_000 + b"]" * 9_000,
        "more than 10,000 lists": b"[" + b"[]," * 20_000 + b"[]]",
    }
    for said, body in bodies.items():
        found, _ = ask("mistral-ocr", page, monkeypatch, faults=[Answer(body)])
        assert isinstance(found, EngineError) and said in found.message
    bomb = gzip.compress(b'{"pages": "' + b"x" * 5_000_000 + b'"}')
    found, _ = ask("mistral-ocr", page, monkeypatch, faults=[Answer(bomb, 200, {"Content-Encoding": "gzip"})])
    assert isinstance(found, EngineError)


def test_an_answer_that_is_slow_to_look_through_holds_up_nobody(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        body = b'{"pages": [' + b"1," * 400_000 + b'{"markdown": "x"}]}'
        async with service("mistral-ocr", faults=[Answer(body)]) as server:
            profile = load_profile("mistral-ocr", {"base_url": server.url})[1]
            async with open_engine(cast(Settings, profile)) as engine:
                asked: asyncio.Future[Output] = asyncio.ensure_future(engine.predict(Request(id="a", images=(page,))))
                turns = 0
                while not asked.done():
                    turns += looking.is_set()
                    await asyncio.sleep(0.001)
                assert (await asked).text == "x" and turns > 2

    looking = threading.Event()
    real = paths.text_at

    def text_at(path: str, data: Any) -> list[Any]:
        looking.set()
        try:
            return real(path, data)
        finally:
            looking.clear()

    monkeypatch.setattr(client, "text_at", text_at)
    monkeypatch.setenv("MISTRAL_API_KEY", SECRET)
    asyncio.run(main())


def test_an_answer_of_too_many_values_is_an_error(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_VALUES", 1_000)
    found, _ = ask("mistral-ocr", page, monkeypatch, faults=[Answer(b'{"pages": [' + b"1," * 2_000 + b"1]}")])
    assert isinstance(found, EngineError) and "more than 1,000 values" in found.message


@pytest.mark.parametrize("body", [b"\xff\xfe", b"", b"<html>busy</html>", b'{"pages": [', b"NaN", b'"text"', b"null"])
def test_what_is_no_answer_is_an_error_of_its_page(body: bytes, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mistral-ocr", "rapidocr-api", "unstructured", "paddlex", "datalab"):
        found, _ = ask(name, page, monkeypatch, faults=[Answer(body)])
        assert isinstance(found, EngineError) and not isinstance(found, EngineUnavailableError)


def test_characters_that_no_terminal_should_see_are_kept_and_halves_of_characters_are_not(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b'{"pages": [{"markdown": "a\\u001b]0;x\\u0007\\u202e\\ud800b"}]}'
    found, _ = ask("mistral-ocr", page, monkeypatch, faults=[Answer(body)])
    assert isinstance(found, Output) and found.text == "a\x1b]0;x\x07\u202e\ufffdb"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["pages", "markdown", "text", "result", "status", "output", "chunks", "content", "type", "0"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
CLIENTS = {
    name: ServiceClient(settings=cast(Settings, load_profile(name)[1]), caller=cast(calls.Caller, None), secrets={})
    for name in ("mistral-ocr", "rapidocr-api", "unstructured", "llamaparse", "paddleocr-api", "reducto", "landingai")
}


@given(JSON)
def test_any_json_is_a_text_or_an_error_of_ours(data: Any) -> None:
    for asked in CLIENTS.values():
        for whole in (False, True):
            try:
                read = asked._taken(data, 0.0, whole=whole)
            except EngineError as error:
                assert error.message.isprintable()
                continue
            assert all(isinstance(each, str) for each in read.texts)
            msgspec.json.encode(read.usage)


# ---- profiles

GOOD: dict[str, Any] = {
    "kind": "http",
    "base_url": "https://ocr.example",
    "secrets": {"key": "OCR_KEY"},
    "submit": {"url": "/ocr", "raw": True},
    "answer": {"text": "text"},
}
BAD: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda one: one | {"submit": {"url": "https://evil.example/", "raw": True}}, "must be a path"),
    (lambda one: one | {"submit": {"url": "//evil.example/\r\n", "raw": True}}, "must be a path"),
    (lambda one: one | {"submit": {"url": "/ocr?k={secret:key}", "raw": True}}, "do not stand in addresses"),
    (lambda one: one | {"submit": {"url": "/ocr", "raw": True, "json": {}}}, "name one of"),
    (lambda one: one | {"submit": {"url": "/ocr", "json": {"a": "{other:x}"}}}, "no placeholder {other:x}"),
    (lambda one: one | {"submit": {"url": "/ocr", "json": {"a": "{page:path}"}}}, "no placeholder {page:path}"),
    (lambda one: one | {"submit": {"url": "/ocr", "json": {"a": "{secret:b}"}}}, "not in [secrets]"),
    (lambda one: one | {"submit": {"url": "/ocr", "json": {"a": "{poll:x}"}}}, "not known yet"),
    (lambda one: one | {"submit": {"url": "/ocr", "json": {"api_key": SECRET}}}, "holds a key"),
    (lambda one: one | {"headers": {"Authorization": f"Bearer {SECRET}"}}, "holds a key"),
    (lambda one: one | {"secrets": {"key": SECRET}}, "no name of an environment variable"),
    (lambda one: one | {"base_url": "http://ocr.example"}, "unencrypted"),
    (lambda one: one | {"base_url": f"https://me:{SECRET}@ocr.example"}, "without query and password"),
    (lambda one: one | {"base_url": f"https://ocr.example/?key={SECRET}"}, "without query and password"),
    (lambda one: one | {"connect_timeout": float("nan")}, "above 0 seconds and finite"),
    (lambda one: one | {"base_url": "file:///etc"}, "one address with https"),
    (lambda one: one | {"base_url": ["https://a.example", "https://b.example"]}, "one address"),
    (lambda one: one | {"answer": {"text": "a.["}}, "is no JMESPath"),
    (lambda one: one | {"answer": {"text": ""}}, "empty"),
    (lambda one: one | {"poll": {"url": "https://evil.example/", "pending_codes": [202]}}, "must be a path"),
    (lambda one: one | {"poll": {"url": "{page:base64}", "pending_codes": [202]}}, "must be a path"),
    (lambda one: one | {"poll": {"url": "/x"}}, "poll needs"),
    (lambda one: one | {"poll": {"url": "/x", "pending_codes": [202], "every": 0}}, "must be from"),
    (lambda one: one | {"fetch": [{"url": "file:///etc/passwd"}]}, "must be a path"),
    (lambda one: one | {"rate": {"per_second": 0}}, "at least"),
    (lambda one: one | {"send": "document"}, "[document]"),
    (lambda one: one | {"model": "x"}, "names a {model}"),
    (lambda one: one | {"headers": {"X": "{prompt}"}}, "headers of a request"),
    (lambda one: one | {"surprise": 1}, "unknown key"),
    (lambda one: one | {"submit": {"url": "/ocr", "raw": True, "surprise": 1}}, "unknown key"),
]


@pytest.mark.parametrize(("change", "said"), BAD)
def test_a_profile_that_cannot_be_right_is_refused_on_loading(
    change: Callable[[dict[str, Any]], Any], said: str, tmp_path: Path
) -> None:
    from loupe.data.toml import as_toml

    path = tmp_path / "mine.toml"
    path.write_text("".join(f"{key} = {as_toml(value)}\n" for key, value in GOOD.items()), encoding="utf-8")
    load_profile(str(path))
    table = change(GOOD)
    path.write_text("".join(f"{key} = {as_toml(value)}\n" for key, value in table.items()), encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        load_profile(str(path))
    assert said in caught.value.message and SECRET not in caught.value.message


def test_a_strangers_profile_says_what_it_sends_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loupe.toml").write_text(
        '[engines.ocr]\nkind = "http"\nbase_url = "https://evil.example"\nsecrets = { key = "AWS_SECRET" }\n'
        'submit = { url = "/x", raw = true }\nanswer = { text = "t" }\n',
        encoding="utf-8",
    )
    found = read_settings()
    assert found is not None
    (line,) = found.effects(ENGINES)
    assert "https://evil.example" in line and "AWS_SECRET" in line
    with pytest.raises(UsageError, match="not trusted"):
        load_profile("ocr")


def test_what_is_stored_of_a_profile_holds_no_key_and_is_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", SECRET)
    profile = load_profile("mistral-ocr")[1]
    stored = profile.stored()
    assert SECRET not in json.dumps(stored)
    assert msgspec.convert(stored, Settings) == profile
