"""DeepSeek-OCR through stand-ins, its modes in compress and fox, and the rule against repeated n-grams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.engines.environments.readers.deepseek_ocr import banned_tokens
from loupe.errors import EngineError, UsageError
from loupe.metrics import vision_tokens
from tests.engines_sdk.asking import StandIn, answer, blank_page
from tests.support.command_line import complaint, loupe


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
    stand_in.put("deepseek_transformers", "deepseek-ocr-sdk")
    found = answer("deepseek-ocr-sdk", page, mode=mode)
    # 1 2 3 1 2 3 ...: after 32 words, the next would end a run of 30 for the second time.
    assert found.text.split() == (["1", "2", "3"] * 11)[:32]
    assert (found.finish_reason, found.output_tokens) == ("stop", 33)
    assert found.input_tokens == vision_tokens(200, 100, mode).sequence + 6
    (asked,) = stand_in.notes("infer")
    assert asked == {"call": "infer", "prompt": "<image>\nFree OCR.", "sizes": sizes, "saved": False}
    (generated,) = stand_in.notes("generate")
    assert (generated["rules"], generated["no_repeat_ngram_size"], generated["max_new_tokens"]) == (1, 0, 8192)


def test_a_package_starts_in_an_empty_folder_and_finds_what_is_named_relative_to_ours(
    page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(page.parent)
    Path("weights").mkdir()
    stand_in.put("deepseek_transformers", "deepseek-ocr-sdk")
    assert answer("deepseek-ocr-sdk", Path(page.name), model="./weights").text
    (loaded,) = stand_in.notes("model")
    assert loaded["name"] == str(page.parent / "weights")
    (started,) = stand_in.notes("started")
    assert started["folder"] != str(page.parent) and started["files"] == ["in-use"]


def test_deepseek_without_our_rule_is_left_to_its_own_and_cut_at_the_limit(
    page: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.put("deepseek_transformers", "deepseek-ocr-sdk")
    found = answer("deepseek-ocr2-sdk", page, ngram_size=0, max_tokens=50)
    assert (found.finish_reason, found.output_tokens) == ("length", 50)
    (generated,) = stand_in.notes("generate")
    assert (generated["rules"], generated["no_repeat_ngram_size"]) == (0, 35)
    (loaded,) = stand_in.notes("model")
    assert loaded["name"] == "deepseek-ai/DeepSeek-OCR-2" and len(loaded["revision"]) == 40
    assert loaded["_attn_implementation"] == "flash_attention_2" and loaded["trust_remote_code"]
    assert stand_in.notes("infer")[0]["sizes"] == [1024, 768, True]
    monkeypatch.setenv("OMP_STAND_IN", "silent:page")
    with pytest.raises(EngineError, match=r"infer\(\) gave NoneType instead of a text"):
        answer("deepseek-ocr-sdk", page)


def test_code_of_a_model_that_may_change_is_not_run_unless_wanted(page: Path, stand_in: StandIn) -> None:
    stand_in.put("deepseek_transformers", "deepseek-ocr-sdk")
    for revision, said in (("main", "revision 'main' is no commit"), ("", "no revision is given")):
        with pytest.raises(UsageError, match=said):
            answer("deepseek-ocr-sdk", page, revision=revision)
    assert stand_in.notes("model") == []
    assert answer("deepseek-ocr-sdk", page, revision="", unpinned_code=True).text


def test_deepseek_with_vllm_gets_its_rule_and_has_gundam_alone(page: Path, stand_in: StandIn) -> None:
    stand_in.put("deepseek_vllm", "deepseek-ocr-vllm")
    found = answer("deepseek-ocr-vllm", page)
    assert (found.text, found.input_tokens, found.output_tokens) == ("Read.<｜end▁of▁sentence｜>", 280, 3)
    (opened,), (asked,) = stand_in.notes("LLM"), stand_in.notes("generate")
    assert opened["rules"] == ["NGramPerReqLogitsProcessor"] and opened["max_model_len"] == 8192
    assert (asked["prompt"], asked["image"]) == ("<image>\nFree OCR.", ["RGB", 200, 100])
    assert asked["extra_args"] == {"ngram_size": 30, "window_size": 90, "whitelist_token_ids": [128821, 128822]}
    assert (asked["temperature"], asked["skip_special_tokens"]) == (0.0, False)
    assert answer("deepseek-ocr-vllm", page, ngram_size=0).text
    assert stand_in.notes("LLM")[1]["rules"] == [] and "extra_args" not in stand_in.notes("generate")[1]
    with pytest.raises(UsageError, match='mode = "small": vLLM has gundam alone'):
        answer("deepseek-ocr-vllm", page, mode="small")
    with pytest.raises(UsageError, match="tiles of 768 pixels has gundam alone"):
        answer("deepseek-ocr-vllm", page, tile=768, backend="transformers", mode="base")


def test_compress_and_fox_read_in_the_mode_that_they_count(tmp_path: Path, stand_in: StandIn) -> None:
    environment = stand_in.put("deepseek_transformers", "deepseek-ocr-sdk")
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


def test_a_folder_called_like_the_model_is_not_loaded_in_its_place(
    page: Path, stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.put("deepseek_transformers", "deepseek-ocr-sdk")
    (tmp_path / "here/deepseek-ai/DeepSeek-OCR").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match="deepseek-ai/DeepSeek-OCR lies in this folder"):
        answer("deepseek-ocr-sdk", page)
    assert stand_in.notes("model") == []
