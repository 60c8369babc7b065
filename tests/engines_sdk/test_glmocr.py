"""Vendors' packages in environments, through stand-ins that take what the packages take.

`tests/stand_ins/signatures.json` holds the parameters of the packages themselves (script/check_sdk_signatures.py).
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from script.check_sdk_signatures import parameters

from loupe.errors import EngineError, EngineUnavailableError, MissingToolError, UsageError
from loupe.types import Output
from tests.engines_sdk.asking import ASTRAY, MODELS, STAND_INS, StandIn, answer, ask, blank_page
from tests.support.chat_server import in_thread
from tests.support.command_line import loupe


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
    ("engine", "environment"),
    [
        ("glm-ocr-sdk", "glmocr"),
        ("paddleocr-vl-sdk", "pp-structure"),
        ("mineru", "mineru"),
        ("mineru3", "mineru-3"),
        ("deepseek-ocr-sdk", "deepseek-ocr"),
        ("deepseek-ocr-vllm", "deepseek-ocr-vllm"),
    ],
)
def test_an_environment_that_is_not_here_is_named_with_the_command_that_makes_it(
    engine: str, environment: str, page: Path, stand_in: StandIn
) -> None:
    with pytest.raises(MissingToolError) as error:
        answer(engine, page)
    assert error.value.message == f"the environment {environment} is not installed"
    assert error.value.hint == f"run: loupe engine install {environment}"
    assert error.value.exit_code == 4


def test_glmocr_reads_sample_pages_here_whatever_the_environment_says(tmp_path: Path, stand_in: StandIn) -> None:
    environment = stand_in.put("glmocr", "glm-ocr-sdk")
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
    stand_in.put("glmocr", "glm-ocr-sdk")
    with in_thread("", get=MODELS) as server:
        for action, wanted in (
            ("one-region", 1),
            ("all-regions", "all 2 regions"),
            ("no-page", "could not load"),
            ("no-layout", "Layout detection failed for pages [0], skipping batch: oom"),
            ("blank", 0),
            ("empty-region", 1),
        ):
            monkeypatch.setenv("OMP_STAND_IN", f"{action}:p")
            (found,) = ask("glm-ocr-sdk", blank_page(tmp_path / "p.png"), base_url=server.url)
            if isinstance(found, Output):
                assert found.response is not None and found.response["failed_regions"] == wanted
                text = "# p 200x100" if action == "one-region" else ""
                assert (found.response["calls"], found.text) == (0 if action == "blank" else 2, text)
                assert found.finish_reason is None
            else:
                assert isinstance(found, EngineError) and str(wanted) in found.message


def test_glmocr_never_asks_a_cloud(page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in.put("glmocr", "glm-ocr-sdk")
    with pytest.raises(UsageError, match=r"open\.bigmodel\.cn is the vendor's cloud"):
        answer("glm-ocr-sdk", page, base_url="https://open.bigmodel.cn/api/paas/v4")
    with in_thread("", get=MODELS) as server:
        with pytest.raises(EngineUnavailableError, match="sends no document there"):
            answer("glm-ocr-sdk", page, base_url=server.url, config={"pipeline": {"maas": {"enabled": True}}})
        monkeypatch.setenv("OMP_STAND_IN", "cloud:")
        with pytest.raises(EngineUnavailableError, match="would use the vendor's cloud"):
            answer("glm-ocr-sdk", page, base_url=server.url)
        for action, place in (("upload", "203.0.113.7"), ("resolve", "open.bigmodel.example")):
            monkeypatch.setenv("OMP_STAND_IN", f"{action}:page")
            with pytest.raises(EngineUnavailableError, match=f"it wanted to reach {place}, which Loupe"):
                answer("glm-ocr-sdk", page, base_url=server.url)
    assert stand_in.notes("parse") == []


def test_a_model_server_that_is_not_there_or_has_another_model_is_named(page: Path, stand_in: StandIn) -> None:
    stand_in.put("glmocr", "glm-ocr-sdk")
    with pytest.raises(EngineUnavailableError, match=r"no model server answers at http://127\.0\.0\.1:1/v1") as error:
        answer("glm-ocr-sdk", page, base_url="127.0.0.1:1")
    assert error.value.hint.startswith("vllm serve zai-org/GLM-OCR")
    with in_thread("", get=MODELS) as server:
        with pytest.raises(EngineUnavailableError, match="does not serve 'other', only: glm-ocr"):
            answer("glm-ocr-sdk", page, base_url=server.url, model="other")
        with pytest.raises(UsageError, match="asks one model server, and got 2 servers"):
            answer("glm-ocr-sdk", page, base_url=[server.url, server.url])
