"""PaddleOCR-VL and MinerU through stand-ins: calls, answers, failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loupe.errors import EngineError, EngineTimeoutError, EngineUnavailableError, ProfileError, UsageError
from loupe.types import Output, PdfPage
from tests.engines_sdk.asking import ASTRAY, MODELS, StandIn, answer, ask, blank_page
from tests.support.chat_server import in_thread
from tests.support.command_line import loupe
from tests.support.pages import write_pdf


def test_paddleocr_is_called_with_the_profile_and_gives_text_and_regions(page: Path, stand_in: StandIn) -> None:
    stand_in.put("paddleocr", "paddleocr-vl-sdk")
    found = answer("paddleocr-vl-sdk", page)
    assert found.text == "page 200x100"
    assert found.response is not None
    assert [each["bbox_2d"] for each in found.response["regions"]] == [[100, 100, 900, 200], [100, 500, 900, 750]]
    assert found.response["regions"][1]["content"] == "<table><tr><td>1</td></tr></table>"
    (opened,) = stand_in.notes("open")
    assert (opened["pipeline_version"], opened["vl_rec_backend"]) == ("v1.5", "native")
    assert opened["markdown_ignore_labels"][0] == "number" and "vl_rec_server_url" not in opened
    assert stand_in.notes("predict")[0]["max_new_tokens"] == 4096


def test_paddleocr_asks_a_server_if_it_is_told_to(page: Path, stand_in: StandIn) -> None:
    stand_in.put("paddleocr", "paddleocr-vl-sdk")
    with in_thread("", get=MODELS) as server:
        settings = {"backend": "vllm-server", "base_url": server.url, "model": "glm-ocr", "region_workers": 4}
        assert answer("paddleocr-vl-sdk", page, **settings, device="cpu").text
    (opened,) = stand_in.notes("open")
    assert opened["vl_rec_server_url"] == server.url and opened["vl_rec_api_model_name"] == "glm-ocr"
    assert (opened["vl_rec_max_concurrency"], opened["device"]) == (4, "cpu")
    with pytest.raises(EngineUnavailableError, match="Unknown argument: nonsense"):
        answer("paddleocr-vl-sdk", page, options={"nonsense": 1})
    with pytest.raises(ProfileError, match=r"max_tokens = \"many\": must be like 4096"):
        answer("paddleocr-vl-sdk", page, max_tokens="many")
    with pytest.raises(ProfileError, match="backend = 'vllm': must be one of native, vllm-server"):
        answer("paddleocr-vl-sdk", page, backend="vllm")


def test_models_are_fetched_only_if_that_is_asked_for(
    page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    stand_in.put("paddleocr", "paddleocr-vl-sdk")
    assert answer("paddleocr-vl-sdk", page).finish_reason is None, "the package does not say how an answer ended"
    assert answer("paddleocr-vl-sdk", page, download=True).text
    assert [note["offline"] for note in stand_in.notes("open")] == ["1", ""]
    monkeypatch.setenv("OMP_STAND_IN", "fetch:")
    with pytest.raises(EngineUnavailableError, match=r"it wanted to reach 203\.0\.113\.7, which Loupe") as error:
        answer("paddleocr-vl-sdk", page)
    assert error.value.hint.endswith("loupe engine install pp-structure --weights")


def test_what_paddleocr_gives_back_wrongly_is_an_error(
    page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.put("paddleocr", "paddleocr-vl-sdk")
    for action, message in (("two", "2 results for one page"), ("old", "gave dict as the text of a page")):
        monkeypatch.setenv("OMP_STAND_IN", f"{action}:page")
        with pytest.raises(EngineError, match=message):
            answer("paddleocr-vl-sdk", page)


def test_a_crash_a_hang_and_an_error_cost_one_page(
    tmp_path: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.put("paddleocr", "paddleocr-vl-sdk")
    pages = [blank_page(tmp_path / f"{name}.png") for name in ("bad", "good")]
    for action, kind, message in (
        ("crash", EngineError, r"the worker process died \(SIGSEGV\) on this page"),
        ("hang", EngineTimeoutError, "no answer within 2 s"),
        ("raise", EngineError, "RuntimeError: cannot read bad"),
    ):
        monkeypatch.setenv("OMP_STAND_IN", f"{action}:bad")
        bad, good = ask("paddleocr-vl-sdk", *pages, timeout=2.0)
        assert isinstance(bad, kind) and isinstance(good, Output) and good.text == "good 200x100"
        with pytest.raises(kind, match=message):
            raise bad


def test_mineru_3_is_asked_through_do_parse(tmp_path: Path, stand_in: StandIn) -> None:
    environment = stand_in.put("mineru_3", "mineru3")
    words = ["infer", "sample_pages", "-e", "mineru3", "--limit", "2", "-o", "backend=pipeline", "-o", "method=ocr"]
    done = loupe(*words, cwd=tmp_path, env={**environment, **ASTRAY})
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in next(tmp_path.rglob("predictions.jsonl")).read_text().splitlines()]
    assert [row["text"].split()[1] for row in rows] == ["prose", "two_columns"]
    regions = rows[0]["response"]["regions"]
    assert [each["label"] for each in regions] == ["title", "table", "list", "image"]
    assert [each["content"] for each in regions][1:] == ["<table></table>", "one\ntwo", ""]
    warm_up, *pages = stand_in.notes("do_parse")
    assert warm_up["page"].endswith("warm-up.png") and len(pages) == 2
    assert (pages[0]["backend"], pages[0]["parse_method"], pages[0]["p_lang_list"]) == ("pipeline", "ocr", ["ch"])
    assert (pages[0]["effort"], pages[0]["kwargs"], pages[0]["server_url"]) == ("medium", {}, None)


def test_mineru_4_is_asked_through_its_parser_and_asks_nobody_else(
    page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.put("mineru_4", "mineru")
    for name, value in ASTRAY.items():
        monkeypatch.setenv(name, value)
    found = answer("mineru", page, tier="advanced")
    assert found.text == "# page 200x100\n\n![](images/a.jpg)\n"
    assert found.response is not None
    assert [each["content"] for each in found.response["regions"]] == [
        "page 200x100",
        "see this",
        "<table></table>\nT",
    ]
    assert found.response["regions"][0]["bbox_2d"] == [100, 50, 900, 100]
    (opened,) = stand_in.notes("open")
    assert opened == {"call": "open", "tier": "advanced", "parse_mode": "auto", "server": "", "steering": []}
    assert stand_in.notes("config")[0]["file"] == "{}\n"


@pytest.mark.parametrize(
    ("name", "engine", "version"), [("mineru_3", "mineru3", "2.7.6"), ("mineru_4", "mineru", "4.0.1")]
)
def test_a_page_of_a_pdf_is_handed_over_alone_or_as_an_image(
    name: str, engine: str, version: str, tmp_path: Path, stand_in: StandIn
) -> None:
    stand_in.put(name, engine, mineru=version)
    pdf = PdfPage(write_pdf(tmp_path / "book.pdf", "one", "two"), 2)
    assert answer(engine, pdf).text.splitlines()[0] == ("# page, page 0" if engine == "mineru3" else "# page")
    assert "page 709x473" in answer(engine, pdf, reads=["image"], dpi=150).text


def test_a_version_of_mineru_without_these_interfaces_is_refused(page: Path, stand_in: StandIn) -> None:
    stand_in.put("mineru_3", "mineru3", mineru="5.0")
    with pytest.raises(UsageError, match=r"mineru 5.0 has none of the interfaces"):
        answer("mineru3", page)
