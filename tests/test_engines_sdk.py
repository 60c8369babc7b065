"""The kinds around vendors' packages, through stand-ins that take what the packages take: calls, answers, failures.

`tests/stand_ins/signatures.json` holds the parameters of the packages themselves (script/check_sdk_signatures.py).
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from script.check_sdk_signatures import parameters

from loupe.engines.registry import engine_module, load_profile
from loupe.engines.sdk.no_repeat_ngrams import banned_tokens
from loupe.errors import (
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    LoupeError,
    MissingToolError,
    ProfileError,
    UsageError,
)
from loupe.metrics import vision_tokens
from loupe.types import Output, PdfPage, Request
from tests.chat_server import in_thread
from tests.command_line import complaint, loupe
from tests.pages import write_pdf

STAND_INS = Path(__file__).parent / "stand_ins"
MODELS = {"/v1/models": {"object": "list", "data": [{"id": "glm-ocr", "object": "model"}]}}
#: Variables with which the packages could be talked into asking somebody else.
ASTRAY = {
    "ZHIPU_API_KEY": "k",
    "GLMOCR_MODE": "maas",
    "GLMOCR_OCR_API_URL": "http://203.0.113.7/v1/chat/completions",
    "MINERU_LLM_AIDED_API_KEY": "k",
    "MINERU_MODEL_VLM_SERVER_URL": "http://203.0.113.7",
    "MINERU_CONFIG": "/nowhere/config.yaml",
}


class StandIn:
    """One stand-in on the path of this process and its children, and what it noted."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._patch = folder, patch
        self._notes = folder / "notes.jsonl"
        patch.setenv("STAND_IN_NOTES", str(self._notes))
        patch.delenv("STAND_IN", raising=False)

    def put(self, name: str, **versions: str) -> dict[str, str]:
        """Put a stand-in there, with what package metadata would say; returns the environment of a command with it."""
        for package, version in versions.items():
            information = self._folder / f"{package}-{version}.dist-info"
            information.mkdir()
            (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        paths = [str(STAND_INS / name), str(STAND_INS), str(self._folder)]
        for path in reversed(paths):
            self._patch.syspath_prepend(path)
        return {"PYTHONPATH": os.pathsep.join(paths)}

    def notes(self, call: str) -> list[dict[str, Any]]:
        """What was noted of one call."""
        lines = self._notes.read_text(encoding="utf-8").splitlines() if self._notes.exists() else []
        return [note for note in map(json.loads, lines) if note["call"] == call]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    folder = tmp_path / "stand-in"
    folder.mkdir()
    before = set(sys.modules)
    yield StandIn(folder, monkeypatch)
    # No stand-in may be imported here: packages run in workers alone.
    assert {"glmocr", "paddleocr", "mineru", "transformers", "vllm"}.isdisjoint(set(sys.modules) - before)


def blank_page(path: Path) -> Path:
    Image.new("RGB", (200, 100), "white").save(path)
    return path


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return blank_page(tmp_path / "page.png")


def ask(name: str, *pages: Path | PdfPage, **settings: Any) -> list[Output | BaseException]:
    """Answers of an engine, or errors, page after page."""

    async def run() -> list[Output | BaseException]:
        _, profile = load_profile(name, settings)
        found: list[Output | BaseException] = []
        async with engine_module(profile.kind).open_engine(profile) as engine:
            for number, source in enumerate(pages):
                try:
                    found.append(await engine.predict(Request(id=f"p{number}", images=(source,), prompt="Free OCR.")))
                except LoupeError as error:
                    found.append(error)
        return found

    return asyncio.run(run())


def answer(name: str, source: Path | PdfPage, **settings: Any) -> Output:
    (found,) = ask(name, source, **settings)
    if isinstance(found, BaseException):
        raise found
    return found


def test_stand_ins_take_what_the_packages_take() -> None:
    recorded = json.loads((STAND_INS / "signatures.json").read_text(encoding="utf-8"))
    files = {
        "glmocr==0.1.5": {"": "glmocr/glmocr/__init__.py", "GlmOcrConfig.default_path": "glmocr/glmocr/config.py"},
        "paddleocr==3.7.0": {"": "paddleocr/paddleocr/__init__.py"},
        "mineru==3.4.5": {"": "mineru_3/mineru/cli/common.py"},
        "mineru==4.0.12": {"": "mineru_4/mineru/parser/__init__.py", "VlmConfig": "mineru_4/mineru/config.py"},
    }
    assert recorded.keys() == files.keys()
    for package, calls in recorded.items():
        for call, names in calls.items():
            file = STAND_INS / files[package].get(call, files[package][""])
            assert parameters(file, call) == names, f"{package} {call}"
    assert ast.parse((STAND_INS / "stand_in.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("engine", "package", "extra"),
    [
        ("glm-ocr-sdk", "glmocr", "glmocr"),
        ("paddleocr-vl-sdk", "paddleocr", "paddleocr"),
        ("mineru", "mineru", "mineru"),
        ("deepseek-ocr-sdk", "torch", "deepseek"),
    ],
)
def test_a_package_that_is_not_here_is_named_with_the_command_that_brings_it(
    engine: str, package: str, extra: str, page: Path
) -> None:
    with pytest.raises(MissingToolError) as error:
        answer(engine, page)
    assert error.value.message == f"the package {package} is not installed"
    assert error.value.hint == f"pip install 'loupe-ocr[{extra}]'"
    assert error.value.exit_code == 4


# ---- glmocr


def test_glmocr_reads_sample_pages_here_whatever_the_environment_says(tmp_path: Path, stand_in: StandIn) -> None:
    environment = stand_in.put("glmocr", glmocr="0.1.5")
    (tmp_path / ".env").write_text("ZHIPU_API_KEY=k\nGLMOCR_MODE=maas\n")
    with in_thread("never asked", get=MODELS) as server:
        words = ["infer", "sample_pages", "-e", "glm-ocr-sdk", "--limit", "2", "--base-url", server.url]
        done = loupe(*words, cwd=tmp_path, env={**environment, **ASTRAY})
    assert done.returncode == 0, done.stderr
    assert "never run with its models" in done.stderr
    rows = [json.loads(line) for line in next(tmp_path.rglob("predictions.jsonl")).read_text().splitlines()]
    assert [row["text"].split()[1] for row in rows] == ["prose", "two_columns"]
    regions = rows[0]["response"]["regions"]
    assert [(each["label"], each["bbox_2d"]) for each in regions][1] == ("image", [100, 200, 500, 600])
    (opened,) = stand_in.notes("open")
    assert (opened["mode"], opened["cloud"], opened["seen"], opened["env"]) == ("selfhosted", False, [], "")
    pipeline = opened["config"]["pipeline"]
    assert pipeline["maas"] == {"enabled": False, "api_url": "http://127.0.0.1:9/", "api_key": None}
    assert pipeline["ocr_api"]["api_url"] == f"{server.url}/chat/completions"
    assert pipeline["layout"] == {
        "model_dir": "PaddlePaddle/PP-DocLayoutV3_safetensors",
        **{"threshold": 0.3, "batch_size": 1, "layout_nms": True, "layout_unclip_ratio": [1.0, 1.0]},
        "use_polygon": False,
        "label_task_mapping": {"text": ["text", "doc_title"], "skip": ["image", "chart"]},
    }
    assert [note["visualization"] for note in stand_in.notes("parse")] == [False, False]
    run = json.loads(next(tmp_path.rglob("run.json")).read_text())
    assert {"glmocr": "0.1.5", "mode": "selfhosted"}.items() <= run["facts"].items()


def test_glmocr_counts_regions_that_failed_and_a_page_of_nothing_else_is_an_error(
    tmp_path: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.put("glmocr", glmocr="0.1.5")
    with in_thread("", get=MODELS) as server:
        for action, wanted in (
            ("one-region", 1),
            ("all-regions", "all 2 regions"),
            ("no-page", "could not load"),
            ("no-layout", "Layout detection failed for pages [0], skipping batch: oom"),
            ("blank", 0),
            ("empty-region", 1),
        ):
            monkeypatch.setenv("STAND_IN", f"{action}:p")
            (found,) = ask("glm-ocr-sdk", blank_page(tmp_path / "p.png"), base_url=server.url)
            if isinstance(found, Output):
                assert found.response is not None and found.response["failed_regions"] == wanted
                text = "# p 200x100" if action == "one-region" else ""
                assert (found.response["calls"], found.text) == (0 if action == "blank" else 2, text)
                assert found.finish_reason is None
            else:
                assert isinstance(found, EngineError) and str(wanted) in found.message


def test_glmocr_never_asks_a_cloud(page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in.put("glmocr", glmocr="0.1.5")
    with pytest.raises(UsageError, match=r"open\.bigmodel\.cn is the vendor's cloud"):
        answer("glm-ocr-sdk", page, base_url="https://open.bigmodel.cn/api/paas/v4")
    with pytest.raises(ProfileError, match="sends no document there"):
        load_profile("glm-ocr-sdk", {"config": {"pipeline": {"maas": {"enabled": True}}}})
    with in_thread("", get=MODELS) as server:
        monkeypatch.setenv("STAND_IN", "cloud:")
        with pytest.raises(EngineUnavailableError, match="insists on the vendor's cloud"):
            answer("glm-ocr-sdk", page, base_url=server.url)
        for action, place in (("upload", "203.0.113.7"), ("resolve", "open.bigmodel.example")):
            monkeypatch.setenv("STAND_IN", f"{action}:page")
            with pytest.raises(EngineUnavailableError, match=f"wanted to reach {place} while it read a page"):
                answer("glm-ocr-sdk", page, base_url=server.url)
    assert stand_in.notes("parse") == []


def test_a_model_server_that_is_not_there_or_has_another_model_is_named(page: Path, stand_in: StandIn) -> None:
    stand_in.put("glmocr", glmocr="0.1.5")
    with pytest.raises(EngineUnavailableError, match=r"no model server answers at http://127\.0\.0\.1:1/v1") as error:
        answer("glm-ocr-sdk", page, base_url="127.0.0.1:1")
    assert error.value.hint.startswith("vllm serve zai-org/GLM-OCR")
    with in_thread("", get=MODELS) as server:
        with pytest.raises(EngineUnavailableError, match="does not serve 'other', only: glm-ocr"):
            answer("glm-ocr-sdk", page, base_url=server.url, model="other")
        with pytest.raises(UsageError, match="asks one model server, and got 2 servers"):
            answer("glm-ocr-sdk", page, base_url=[server.url, server.url])


# ---- paddleocr_vl


def test_paddleocr_is_called_with_the_profile_and_gives_text_and_regions(page: Path, stand_in: StandIn) -> None:
    stand_in.put("paddleocr", paddleocr="3.7.0", paddlex="3.7.2")
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
    stand_in.put("paddleocr", paddleocr="3.7.0", paddlex="3.7.2")
    with in_thread("", get=MODELS) as server:
        settings = {"backend": "vllm-server", "base_url": server.url, "model": "glm-ocr", "region_workers": 4}
        assert answer("paddleocr-vl-sdk", page, **settings, device="cpu").text
    (opened,) = stand_in.notes("open")
    assert opened["vl_rec_server_url"] == server.url and opened["vl_rec_api_model_name"] == "glm-ocr"
    assert (opened["vl_rec_max_concurrency"], opened["device"]) == (4, "cpu")
    with pytest.raises(EngineUnavailableError, match="Unknown argument: nonsense"):
        answer("paddleocr-vl-sdk", page, options={"nonsense": 1})


def test_models_are_fetched_only_if_that_is_asked_for(
    page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    stand_in.put("paddleocr", paddleocr="3.7.0", paddlex="3.7.2")
    assert answer("paddleocr-vl-sdk", page).finish_reason is None, "the package does not say how an answer ended"
    assert answer("paddleocr-vl-sdk", page, download=True).text
    assert [note["offline"] for note in stand_in.notes("open")] == ["1", ""]
    monkeypatch.setenv("STAND_IN", "fetch:")
    with pytest.raises(EngineUnavailableError, match="downloads nothing unasked: ConnectionRefusedError") as error:
        answer("paddleocr-vl-sdk", page)
    assert "-o download=true" in error.value.hint


def test_what_paddleocr_gives_back_wrongly_is_an_error(
    page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.put("paddleocr", paddleocr="3.7.0", paddlex="3.7.2")
    for action, message in (("two", "2 results for one page"), ("old", "gave dict as the text of a page")):
        monkeypatch.setenv("STAND_IN", f"{action}:page")
        with pytest.raises(EngineError, match=message):
            answer("paddleocr-vl-sdk", page)


def test_a_crash_a_hang_and_an_error_cost_one_page(
    tmp_path: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.put("paddleocr", paddleocr="3.7.0", paddlex="3.7.2")
    pages = [blank_page(tmp_path / f"{name}.png") for name in ("bad", "good")]
    for action, kind, message in (
        ("crash", EngineError, r"the engine process died \(signal 11, SIGSEGV\) on this page"),
        ("hang", EngineTimeoutError, "no answer within 2 s"),
        ("raise", EngineError, "RuntimeError: cannot read bad"),
    ):
        monkeypatch.setenv("STAND_IN", f"{action}:bad")
        bad, good = ask("paddleocr-vl-sdk", *pages, timeout=2.0)
        assert isinstance(bad, kind) and isinstance(good, Output) and good.text == "good 200x100"
        with pytest.raises(kind, match=message):
            raise bad


# ---- mineru


def test_mineru_3_is_asked_through_do_parse(tmp_path: Path, stand_in: StandIn) -> None:
    environment = stand_in.put("mineru_3", mineru="3.4.5")
    words = ["infer", "sample_pages", "-e", "mineru", "--limit", "2", "-o", "backend=pipeline", "-o", "method=ocr"]
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
    stand_in.put("mineru_4", mineru="4.0.12")
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


@pytest.mark.parametrize(("name", "version"), [("mineru_3", "2.7.6"), ("mineru_4", "4.0.1")])
def test_a_page_of_a_pdf_is_handed_over_as_it_is_or_as_an_image(
    name: str, version: str, tmp_path: Path, stand_in: StandIn
) -> None:
    stand_in.put(name, mineru=version)
    pdf = PdfPage(write_pdf(tmp_path / "book.pdf", "one", "two"), 2)
    assert answer("mineru", pdf).text.splitlines()[0] == ("# book, page 1" if name == "mineru_3" else "# book, page 2")
    assert "page 709x473" in answer("mineru", pdf, pdf_pages=False, dpi=150).text


def test_a_version_of_mineru_without_these_interfaces_is_refused(page: Path, stand_in: StandIn) -> None:
    stand_in.put("mineru_3", mineru="5.0")
    with pytest.raises(MissingToolError, match=r"mineru 5.0 has none of the interfaces"):
        answer("mineru", page)


# ---- deepseek_ocr


@pytest.mark.parametrize(
    ("mode", "sizes"),
    [
        ("base", [1024, 1024, False]),
        ("large", [1280, 1280, False]),
        ("gundam", [1024, 640, True]),
    ],
)
def test_deepseek_reads_in_the_mode_it_is_told_with_transformers(
    mode: str, sizes: list[Any], page: Path, stand_in: StandIn
) -> None:
    stand_in.put("deepseek_transformers", torch="2.6.0", transformers="4.46.3")
    found = answer("deepseek-ocr-sdk", page, mode=mode)
    # 1 2 3 1 2 3 ...: after 32 words, the next would end a run of 30 for the second time.
    assert found.text.split() == (["1", "2", "3"] * 11)[:32]
    assert (found.finish_reason, found.output_tokens) == ("stop", 33)
    assert found.input_tokens == vision_tokens(200, 100, mode).sequence + 6
    (asked,) = stand_in.notes("infer")
    assert asked == {"call": "infer", "prompt": "<image>\nFree OCR.", "sizes": sizes, "saved": False}
    (generated,) = stand_in.notes("generate")
    assert (generated["rules"], generated["no_repeat_ngram_size"], generated["max_new_tokens"]) == (1, 0, 8192)


def test_deepseek_without_our_rule_is_left_to_its_own_and_cut_at_the_limit(
    page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.put("deepseek_transformers", torch="2.6.0", transformers="4.46.3")
    found = answer("deepseek-ocr2-sdk", page, ngram_size=0, max_tokens=50)
    assert (found.finish_reason, found.output_tokens) == ("length", 50)
    (generated,) = stand_in.notes("generate")
    assert (generated["rules"], generated["no_repeat_ngram_size"]) == (0, 35)
    (loaded,) = stand_in.notes("model")
    assert loaded["name"] == "deepseek-ai/DeepSeek-OCR-2" and len(loaded["revision"]) == 40
    assert loaded["_attn_implementation"] == "flash_attention_2" and loaded["trust_remote_code"]
    assert stand_in.notes("infer")[0]["sizes"] == [1024, 768, True]
    monkeypatch.setenv("STAND_IN", "silent:page")
    with pytest.raises(EngineError, match=r"infer\(\) gave NoneType instead of a text"):
        answer("deepseek-ocr-sdk", page)


def test_code_of_a_model_that_may_change_is_not_run_unless_wanted(page: Path, stand_in: StandIn) -> None:
    stand_in.put("deepseek_transformers", torch="2.6.0", transformers="4.46.3")
    for revision, said in (("main", "revision 'main' is no commit"), ("", "no revision is given")):
        with pytest.raises(UsageError, match=said):
            answer("deepseek-ocr-sdk", page, revision=revision)
    assert stand_in.notes("model") == []
    assert answer("deepseek-ocr-sdk", page, revision="", unpinned_code=True).text


def test_deepseek_with_vllm_gets_its_rule_and_has_gundam_alone(page: Path, stand_in: StandIn) -> None:
    stand_in.put("deepseek_vllm", vllm="0.33.0")
    found = answer("deepseek-ocr-sdk", page, backend="vllm")
    assert (found.text, found.input_tokens, found.output_tokens) == ("Read.<｜end▁of▁sentence｜>", 280, 3)
    (opened,), (asked,) = stand_in.notes("LLM"), stand_in.notes("generate")
    assert opened["rules"] == ["NGramPerReqLogitsProcessor"] and opened["max_model_len"] == 8192
    assert (asked["prompt"], asked["image"]) == ("<image>\nFree OCR.", ["RGB", 200, 100])
    assert asked["extra_args"] == {"ngram_size": 30, "window_size": 90, "whitelist_token_ids": [128821, 128822]}
    assert (asked["temperature"], asked["skip_special_tokens"]) == (0.0, False)
    assert answer("deepseek-ocr-sdk", page, backend="vllm", ngram_size=0).text
    assert stand_in.notes("LLM")[1]["rules"] == [] and "extra_args" not in stand_in.notes("generate")[1]
    with pytest.raises(ProfileError, match='mode = "small": vLLM has gundam alone'):
        load_profile("deepseek-ocr-sdk", {"backend": "vllm", "mode": "small"})
    with pytest.raises(ProfileError, match="tiles of 768 pixels has gundam alone"):
        load_profile("deepseek-ocr2-sdk", {"mode": "base"})


def test_compress_and_fox_read_in_the_mode_that_they_count(tmp_path: Path, stand_in: StandIn) -> None:
    environment = stand_in.put("deepseek_transformers", torch="2.6.0", transformers="4.46.3")
    blank_page(tmp_path / "page.png")
    words = ["compress", "--image", "page.png", "--mode", "small", "-e", "deepseek-ocr-sdk", "--json"]
    done = loupe(*words, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "never run with the model" in done.stderr
    (row,) = json.loads(done.stdout)["pages"]
    assert (row["mode"], row["vision_tokens"], row["output_tokens"], row["compression_output"]) == (
        "small",
        100,
        33,
        0.33,
    )
    assert stand_in.notes("infer")[0]["sizes"] == [640, 640, False]
    folder = tmp_path / "fox" / "focus_benchmark_test"
    (folder / "en_pdf_png").mkdir(parents=True)
    blank_page(folder / "en_pdf_png" / "en_1.png")
    item = {
        "image": "en_1.png",
        "len": 5,
        "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "1"}],
    }
    (folder / "en_page_ocr.json").write_text(json.dumps([item]))
    words = [
        "infer",
        "fox",
        "--data",
        "fox",
        "-e",
        "deepseek-ocr-sdk",
        "-o",
        "mode=tiny",
        "-o",
        "words=none",
        "-o",
        "language=en",
    ]
    done = loupe(*words, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert stand_in.notes("infer")[1] == {
        **{"call": "infer", "prompt": "<image>\nFree OCR.", "saved": False},
        "sizes": [512, 512, False],
    }
    run = json.loads(next((tmp_path / "runs").rglob("run.json")).read_text())
    assert run["options"]["mode"] == "tiny" and "mode:tiny" in run["signature"]
    other = loupe("infer", "fox", "-e", "rapidocr", "-o", "mode=huge", cwd=tmp_path)
    assert complaint(other)[0].startswith("option mode=huge: no such value")


# ---- the n-gram rule


@given(
    st.lists(st.integers(0, 3), max_size=40),
    st.integers(2, 6),
    st.integers(1, 50),
    st.sets(st.integers(0, 3), max_size=2),
)
def test_a_token_is_banned_if_it_would_end_a_run_a_second_time(
    tokens: list[int], size: int, window: int, allowed: set[int]
) -> None:
    banned = banned_tokens(tokens, size=size, window=window, allowed=allowed)
    for token in range(4):
        longer = [*tokens, token]
        runs = [longer[start : start + size] for start in range(len(longer) - size + 1)]
        seen = len(runs) > 1 and runs[-1] in runs[max(0, len(tokens) - window) : -1]
        assert (token in banned) == (seen and token not in allowed)


def test_the_rule_of_the_vendor_looks_back_over_its_window_alone_and_spares_cells() -> None:
    line = [1, 2, 3, 4, 5]
    assert banned_tokens([*line, 9, 9, 9, *line[:4]], size=5, window=90) == {5}
    assert banned_tokens([*line, 9, 9, 9, *line[:4]], size=5, window=11) == set()
    assert banned_tokens([*line, 9, 9, 9, *line[:4]], size=5, window=90, allowed=[5]) == set()
    assert banned_tokens(line[:4], size=5, window=90) == set()
