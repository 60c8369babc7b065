"""The profiles of services, each against a server of ours that speaks the service's documented format."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from loupe.engines.adapters.steps import STEPS, apply_adapters, check_adapters
from loupe.engines.http import open_engine
from loupe.engines.registry import BUILT_IN, load_profile
from loupe.engines.services.settings import Settings
from loupe.errors import (
    AccountError,
    EngineError,
    EngineTimeoutError,
    LoupeError,
    NoAnswerError,
    RejectedError,
    TransientEngineError,
    UsageError,
)
from loupe.types import Engine, Output, PageSource, PdfPage, Request
from tests.support.pages import write_pdf
from tests.support.service_server import REASON, SERVICES, TEXT, Answer, ServiceServer, service

PROFILES = sorted(path.stem for path in (BUILT_IN / "services").glob("*.toml"))
POLLING = [name for name in PROFILES if load_profile(name)[1].poll is not None]
WHOLE = [name for name in PROFILES if load_profile(name)[1].document is not None]
#: How each service says why it refuses a page; `error` and a text for the others.
SAYS: dict[str, Callable[[str], Any]] = {
    "azure-layout": lambda said: {"error": {"code": "InvalidRequest", "message": said}},
    "datalab": lambda said: {"detail": said},
    "docling-serve": lambda said: {"detail": said},
    "landingai": lambda said: {"detail": [{"msg": said}]},
    "mathpix": lambda said: {"error": said, "error_info": {"id": "image_not_supported", "message": said}},
    "mistral-ocr": lambda said: {"detail": [{"loc": ["body"], "msg": said}]},
    "nanonets-api": lambda said: {"detail": said},
    "ocr-space": lambda said: {"ErrorMessage": [said], "IsErroredOnProcessing": True},
    "paddlex": lambda said: {"logId": "1", "errorCode": 422, "errorMsg": said},
    "reducto": lambda said: {"error": {"message": said, "type": "invalid", "code": 1}},
    "tika": lambda said: said,
    "unstructured": lambda said: {"detail": said},
}


def keys_of(profile: Settings) -> dict[str, str]:
    """A key for each variable that a profile names."""
    return {name: f"sk-{name.lower()}/+=secret" for name in (profile.secrets | profile.optional_secrets).values()}


def quick(name: str, url: str, **changes: Any) -> Settings:
    """A profile for the stand-in, without pauses."""
    profile = load_profile(name, {"base_url": url, "rate": {}, **changes})[1]
    assert isinstance(profile, Settings)
    if profile.poll is not None:
        profile = msgspec.structs.replace(
            profile, poll=msgspec.structs.replace(profile.poll, every=0.05, backoff=1.0, at_most=0.05)
        )
    return profile


@contextlib.asynccontextmanager
async def opened(
    name: str, monkeypatch: pytest.MonkeyPatch, *, changes: dict[str, Any] | None = None, **state: Any
) -> AsyncIterator[tuple[Engine, ServiceServer, Settings]]:
    """A stand-in that wants the profile's keys in its headers, and the engine that asks it."""
    written = load_profile(name)[1]
    assert isinstance(written, Settings)
    values = keys_of(written)
    for variable, value in values.items():
        monkeypatch.setenv(variable, value)
    named = {key: values[variable] for key, variable in (written.secrets | written.optional_secrets).items()}
    headers = {
        header: text.replace("{secret:id}", named.get("id", "")).replace("{secret:key}", named.get("key", ""))
        for header, text in written.headers.items()
    }
    async with service(name, headers, **state) as server:
        profile = quick(name, server.url, **(changes or {}))
        async with open_engine(profile) as engine:
            yield engine, server, profile


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.png"
    Image.new("RGB", (80, 60), "white").save(path)
    return path


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pdf(tmp_path_factory.mktemp("pdf") / "three.pdf", "one", "two", "three")


def asked(source: PageSource, ident: str = "a") -> Request:
    return Request(id=ident, images=(source,))


async def failing(engine: Engine, source: PageSource) -> LoupeError:
    with pytest.raises(LoupeError) as caught:
        await engine.predict(asked(source))
    return caught.value


def read(name: str, output: Output) -> str:
    return apply_adapters(output.text, check_adapters(load_profile(name)[1].adapters))


def test_there_is_a_stand_in_for_every_profile() -> None:
    assert sorted(SERVICES) == PROFILES and len(PROFILES) >= 25


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_says_where_it_is_from_and_what_it_was_tried_on(name: str) -> None:
    profile = load_profile(name)[1]
    assert isinstance(profile, Settings)
    assert profile.version == f"{name}/1" and profile.title and profile.tried
    assert all("read 20" in source for source in profile.sources) and profile.sources
    assert set(profile.adapters) <= set(STEPS)
    if profile.price:
        assert any("price" in source or "credits a page" in source for source in profile.sources)


def test_the_page_of_services_says_of_each_what_it_is() -> None:
    shown = (Path(__file__).parents[2] / "docs/engines/http.md").read_text(encoding="utf-8")
    for name in PROFILES:
        profile = load_profile(name)[1]
        assert isinstance(profile, Settings)
        price = profile.price
        row = (
            f"| `{name}` | {profile.title} | ",
            *profile.services,
            " | image, PDF | " if profile.document else " | image | ",
            *profile.secrets.values(),
            f"{price.credit:g} a credit" if price and price.credit else "",
            f"{price.page:g} a page" if price and price.page else "",
            " | real server |" if profile.tried == "real" else " | stand-in |",
        )
        line = next((line for line in shown.splitlines() if line.startswith(row[0])), "")
        assert all(part in line for part in row), (name, line)


@pytest.mark.parametrize("name", PROFILES)
def test_a_page_is_read_as_the_service_documents_it(name: str, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with opened(name, monkeypatch) as (engine, server, profile):
            output = await engine.predict(asked(page))
            expected = TEXT.replace("\n\n", "\n") if name == "rapidocr-api" else TEXT
            assert read(name, output) == expected and output.finish_reason == "stop"
            assert all("authorization" not in headers and "x-api-key" not in headers for headers in server.fetched)
            assert bool(server.fetched) == (name == "paddleocr-api")
            if profile.usage.pages or profile.usage.credits:
                assert output.charged
            for key in keys_of(profile).values():
                assert key not in msgspec.json.encode(profile.stored()).decode()

    asyncio.run(main())


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_document_is_sent_once_and_its_pages_are_told_apart(
    name: str, pdf: Path, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(name, monkeypatch, changes={"send": "document"}) as (engine, server, profile):
            assert profile.signature() == {"img": "pdf"} and profile.reads == ("image", "pdf")
            sources = [PdfPage(pdf, 2), PdfPage(pdf, 3), PdfPage(pdf, 1)]
            outputs = await asyncio.gather(*(engine.predict(asked(each, str(each.page))) for each in sources))
            assert [read(name, each) for each in outputs] == ["page 2", "page 3", "page 1"]
            assert len(server.jobs) <= 1 and server.begun == (2 if profile.upload else 1)
            charged = [(each.charged or {}).get("pages") for each in outputs]
            assert sum(each or 0 for each in charged) == 3  # paid for once, whoever asks first
            assert read(name, await engine.predict(asked(page))).startswith("# Invoice")

    asyncio.run(main())


def refusals(name: str) -> list[tuple[Answer, type[LoupeError]]]:
    """What may come in place of an answer, and the error that it is."""
    body = SAYS.get(name, lambda said: {"error": said})(REASON)
    busy = AccountError if name == "paddleocr-api" else TransientEngineError
    return [
        (Answer(body, 400), RejectedError),
        (Answer(body, 422), RejectedError),
        (Answer(body, 401), AccountError),
        (Answer(body, 402), AccountError),
        (Answer(body, 429, {"Retry-After": "7"}), busy),
        (Answer(body, 500), TransientEngineError),
        (Answer(body, 503, {"Retry-After": "7"}), TransientEngineError),
    ]


@pytest.mark.parametrize("name", PROFILES)
def test_what_a_service_refuses_becomes_the_class_that_there_is(
    name: str, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(name, monkeypatch) as (engine, server, profile):
            for answer, kind in refusals(name):
                server.faults[:] = [answer]
                error = await failing(engine, page)
                assert type(error).__mro__.index(kind) <= 1, (answer, error)
                assert REASON in error.message and f"HTTP {answer.status}" in error.message
                if isinstance(error, TransientEngineError) and answer.headers:
                    assert error.retry_after == 7 and error.rate
                if answer.status == 401:
                    assert all(variable in error.hint for variable in profile.secrets.values())
            output = await engine.predict(asked(page))
            assert output.text

    asyncio.run(main())


@pytest.mark.parametrize("name", POLLING)
def test_a_slow_job_is_waited_for_and_an_interrupted_one_is_not_paid_twice(
    name: str, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(name, monkeypatch, pending=4) as (engine, server, _):
            await engine.predict(asked(page))
            assert list(server.asked.values()) == [5]
            begun = server.begun
            server.poll_faults[:] = [Answer({"error": "busy"}, 500)] * 3
            await engine.predict(asked(page, "b"))
            assert server.begun == 2 * begun  # some failed questions are no failed job
            server.poll_faults[:] = [Answer({"error": "busy"}, 503)] * 5
            with pytest.raises(TransientEngineError):
                await engine.predict(asked(page, "c"))
            assert (await engine.predict(asked(page, "c"))).text
            assert server.begun == 3 * begun and len(server.jobs) <= 3

    asyncio.run(main())


@pytest.mark.parametrize("name", POLLING)
def test_a_forgotten_job_is_begun_anew(name: str, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with opened(name, monkeypatch) as (engine, server, _):
            server.poll_faults[:] = [Answer({"error": "no such job"}, 410)]
            error = await failing(engine, page)
            assert isinstance(error, TransientEngineError) and "no longer has the job" in error.message
            begun = server.begun
            assert (await engine.predict(asked(page))).text and server.begun == 2 * begun

    asyncio.run(main())


def test_a_job_without_an_end_is_a_time_out(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with opened("datalab", monkeypatch, changes={"timeout": 3.0}, pending=10**6) as (engine, _, __):
            late = await failing(engine, page)
            assert isinstance(late, EngineTimeoutError)
            assert late.message == "no full answer within 3 s; the job was 'processing'"

    asyncio.run(main())


#: A service, what changes in its good answers, and what the error says.
BROKEN: list[tuple[str, Callable[[Any], Any], type[LoupeError], str]] = [
    ("ocr-space", lambda _: {"IsErroredOnProcessing": True, "ErrorMessage": [REASON]}, EngineError, REASON),
    ("mathpix", lambda _: {"error": REASON, "error_info": {"id": "x", "message": REASON}}, EngineError, REASON),
    ("mathpix", lambda _: {"error": "m", "error_info": {"limit_name": "monthly"}}, AccountError, "quota is used up"),
    ("marker-server", lambda _: {"success": False, "error": REASON}, EngineError, REASON),
    ("paddlex", lambda _: {"errorCode": 500, "errorMsg": REASON, "result": None}, EngineError, REASON),
    ("datalab", lambda _: {"success": False, "error": REASON}, EngineError, REASON),
    ("landingai", lambda body: body | {"metadata": {"failed_pages": [1]}}, EngineError, "something out: [1]"),
    (
        "mistral-ocr",
        lambda _: {"pages": [{"index": 0, "text": "renamed"}]},
        EngineError,
        "no text at 'pages[].markdown'",
    ),
    ("mistral-ocr", lambda _: {"pages": [{"markdown": {"a": 1}}]}, EngineError, "but an object with a"),
    ("rapidocr-api", lambda _: {"0": {"text": "renamed"}}, EngineError, "no text at"),
    ("unstructured", lambda _: [{"type": "Text", "words": "renamed"}], EngineError, "no text at"),
    ("upstage", lambda _: {"content": {"html": "<p>"}}, EngineError, "an object with content"),
]


@pytest.mark.parametrize(("name", "change", "kind", "said"), BROKEN)
def test_an_error_in_a_good_answer_is_no_empty_page(
    name: str,
    change: Callable[[Any], Any],
    kind: type[LoupeError],
    said: str,
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with opened(name, monkeypatch, change=change) as (engine, _, __):
            error = await failing(engine, page)
            assert type(error) is kind and said in error.message

    asyncio.run(main())


def job(state: Any) -> Callable[[Any], Any]:
    """Put a state in the place of what a job says of itself, not of what began it."""
    return lambda body: state if isinstance(body, dict) and next(iter(state)) in body else body


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("azure-layout", job({"status": "failed", "error": {"message": REASON}}), f"(failed): {REASON}"),
        ("datalab", job({"status": "failed", "error": REASON}), f"(failed): {REASON}"),
        ("llamaparse", job({"job": {"status": "FAILED", "error_message": REASON}}), f"(FAILED): {REASON}"),
        ("docling-serve", job({"task_status": "failure", "error_message": REASON, "task_id": "job-1"}), REASON),
        (
            "docling-serve",
            lambda body: body | {"status": "partial_success", "errors": [{"a": 1}]},
            "left something out",
        ),
        ("llamaparse", job({"job": {"status": 3}}), "no word at 'job.status'"),
    ],
)
def test_a_failed_job_says_why(
    name: str, change: Callable[[Any], Any], said: str, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(name, monkeypatch, change=change, pending=0) as (engine, _, __):
            error = await failing(engine, page)
            assert type(error) is EngineError and said in error.message

    asyncio.run(main())


def test_a_quota_of_the_day_ends_the_run_and_a_busy_second_does_not(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened("nanonets-api", monkeypatch) as (engine, server, _):
            server.faults[:] = [Answer({"detail": "Daily rate limit exceeded"}, 429)]
            assert isinstance(await failing(engine, page), AccountError)
            server.faults[:] = [Answer({"detail": "Rate limit exceeded"}, 429)]
            assert isinstance(await failing(engine, page), TransientEngineError)
        async with opened("extend", monkeypatch) as (engine, server, _):
            server.poll_faults[:] = [Answer({"status": "FAILED", "failureReason": "OUT_OF_CREDITS"})]
            assert isinstance(await failing(engine, page), AccountError)
            server.poll_faults[:] = [Answer({"status": "FAILED", "failureReason": "CORRUPT_FILE"})]
            assert isinstance(await failing(engine, page), RejectedError)

    asyncio.run(main())


@pytest.mark.parametrize("name", ["reducto", "pulse"])
def test_a_long_answer_lies_elsewhere_and_is_fetched_without_the_key(
    name: str, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(name, monkeypatch, long=True) as (engine, server, profile):
            assert (await engine.predict(asked(page))).text == TEXT
            (headers,) = server.fetched
            assert set(headers) == {"host", "accept", "accept-encoding", "user-agent"}
            assert not any(key in str(headers) for key in keys_of(profile).values())

    asyncio.run(main())


def test_an_answer_that_is_cut_off_is_truncated(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"pages": [{"text": "a", "finish_reason": "stop"}, {"text": "b", "finish_reason": "length"}]}

    async def main() -> None:
        async with opened("deepseek-ocr-api", monkeypatch, faults=[Answer(body)]) as (engine, _, __):
            output = await engine.predict(asked(page))
            assert (output.text, output.finish_reason) == ("a\n\nb", "length")

    asyncio.run(main())


def test_a_refusal_that_the_profile_knows_is_no_empty_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"pages": [{"text": "", "finish_reason": "content_filter"}], "message": REASON}
    changes = {"errors": {"refused_if": "pages[?finish_reason == 'content_filter']"}}

    async def main() -> None:
        async with opened("deepseek-ocr-api", monkeypatch, changes=changes, faults=[Answer(body)]) as (engine, _, __):
            error = await failing(engine, page)
            assert isinstance(error, NoAnswerError) and (error.outcome, error.message) == ("refused", REASON)

    asyncio.run(main())


def test_a_page_without_text_is_empty_and_no_error(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = {"rapidocr-api": {}, "unstructured": [], "mistral-ocr": {"pages": [{"markdown": ""}]}, "tika": "\n"}

    async def main() -> None:
        for name, body in empty.items():
            async with opened(name, monkeypatch, faults=[Answer(body)]) as (engine, _, __):
                assert (await engine.predict(asked(page))).text.strip() == ""

    asyncio.run(main())


def test_how_soon_a_job_is_asked_about_is_no_other_run() -> None:
    polled = load_profile("azure-layout")[1]
    written = msgspec.to_builtins(polled.poll)
    other = load_profile("azure-layout", {"poll": {**written, "every": 7.0}})[1]
    assert other.poll != polled.poll and other.defining() == polled.defining()
    elsewhere = load_profile("azure-layout", {"poll": {**written, "error": "error.code"}})[1]
    assert elsewhere.defining() != polled.defining()


def test_a_service_that_is_asked_something_may_answer_anything() -> None:
    assert load_profile("mistral-ocr")[1].gives == {"text", "markdown", "table", "formula"}
    asked = {"submit": {"url": "/x", "json": {"image": "{page:data_url}", "ask": "{prompt}"}}}
    assert load_profile("kreuzberg-server", asked)[1].gives is None


def test_a_job_that_asks_for_a_pause_gets_it(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with opened("mineru-api", monkeypatch, pending=0) as (engine, server, _):
            server.poll_faults[:] = [Answer("working", 202, {"Retry-After": "1"})]
            loop = asyncio.get_running_loop()
            began = loop.time()
            assert (await engine.predict(asked(page))).text and loop.time() - began >= 1

    asyncio.run(main())


def test_pages_go_no_faster_than_a_service_allows(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        changes = {"rate": {"per_second": 10}, "concurrency": 8}
        async with opened("glmocr-server", monkeypatch, changes=changes) as (engine, _, __):
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.gather(*(engine.predict(asked(page, str(number))) for number in range(5)))
            assert loop.time() - began >= 0.4

    asyncio.run(main())


def test_a_document_that_met_a_busy_service_is_sent_again(pdf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        faults = [Answer({"detail": "slow down"}, 429)]
        changes = {"send": "document"}
        async with opened("mistral-ocr", monkeypatch, changes=changes, faults=faults) as (engine, server, _):
            assert isinstance(await failing(engine, PdfPage(pdf, 1)), TransientEngineError)
            assert (await engine.predict(asked(PdfPage(pdf, 1)))).text == "page 1" and server.begun == 2

    asyncio.run(main())


@pytest.mark.parametrize("name", [name for name in WHOLE if name in POLLING])
def test_the_job_of_a_document_is_not_paid_twice_whichever_page_asks_next(
    name: str, pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(name, monkeypatch, changes={"send": "document"}) as (engine, server, _):
            server.poll_faults[:] = [Answer({"error": "busy"}, 503)] * 5
            assert isinstance(await failing(engine, PdfPage(pdf, 1)), TransientEngineError)
            begun = server.begun
            assert read(name, await engine.predict(asked(PdfPage(pdf, 2), "b"))) == "page 2"
            assert server.begun == begun

    asyncio.run(main())


def test_a_document_with_pages_left_out_fails_instead_of_shifting_them(
    pdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        body = {"pages": [{"markdown": "1"}, {"markdown": "2"}]}
        changes = {"send": "document"}
        async with opened("mistral-ocr", monkeypatch, changes=changes, faults=[Answer(body)]) as (engine, _, __):
            assert "2 pages for a document of 3" in (await failing(engine, PdfPage(pdf, 1))).message

    asyncio.run(main())


def test_a_missing_key_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MATHPIX_APP_ID", raising=False)
    monkeypatch.setenv("MATHPIX_APP_KEY", "abc")

    async def main(name: str) -> None:
        async with open_engine(load_profile(name)[1]):
            raise AssertionError

    with pytest.raises(UsageError, match="MATHPIX_APP_ID is not set"):
        asyncio.run(main("mathpix"))
    with pytest.raises(UsageError, match="names no address"):
        asyncio.run(main("azure-layout"))
