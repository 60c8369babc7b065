"""The sizing planner: every published cell (oracles/sizing, exact), properties, and what a person can get wrong."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.errors import UsageError
from loupe.features.size.models_and_cards import Dtype, Gpu, ModelFacts, gpu, known_gpus, kv_kib, model_facts, number
from loupe.features.size.plan import plan
from tests.support.command_line import complaint, loupe
from tests.support.shared import cases

CASES = cases("oracles/sizing/cases.jsonl")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_published_and_derived_number_is_met(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    if "num_hidden_layers" in given:
        layers, heads, size = (given[key] for key in ("num_hidden_layers", "num_key_value_heads", "head_dim"))
        assert kv_kib(layers, heads, size, bytes_per_element=given["bytes_per_element"]) == expected["kv_kib_per_token"]
        return
    model = model_facts(given["model"])
    if "versus" in given:
        assert model.weights_gb[given["dtype"]] == Fraction(expected["weights_gb"])
        assert model.weights_gb[given["dtype"]] - model.weights_gb[given["versus"]] == Fraction(
            expected["extra_weights_gb"]
        )
        one, other = (plan(model, gpu("24"), dtype=given[key]) for key in ("dtype", "versus"))
        assert (one.kv_kib_per_token != other.kv_kib_per_token) is expected["kv_kib_per_token_changes"]
        return
    assert model.weights_gb[given["dtype"]] == Fraction(given["weights_gb"])
    assert model.activation_gb == Fraction(given["activation_gb"])
    assert (model.kv_kib_per_token, model.tokens_per_request) == (
        given["kv_kib_per_token"],
        given["tokens_per_request"],
    )
    found = plan(model, gpu(str(given["vram_gb"])), dtype=given["dtype"], utilization=Fraction(given["util"]))
    assert {key: getattr(found, key) for key in expected} == expected


models = st.builds(
    ModelFacts,
    name=st.just("m"),
    stage=st.sampled_from(["ocr", "embedding"]),
    hub=st.just("m"),
    weights_gb=st.fixed_dictionaries({"fp8": st.fractions(0, 200), "bf16": st.fractions(0, 400)}),
    activation_gb=st.fractions(0, 20),
    kv_kib_per_token=st.integers(1, 2000).map(Fraction),
    kv_heads=st.integers(1, 64),
    tokens_per_request=st.integers(1, 100_000),
    max_model_len=st.integers(1, 200_000),
)


@given(models, st.integers(1, 400), st.sampled_from(["fp8", "bf16"]), st.integers(1, 16))
def test_more_memory_never_holds_less_and_a_plan_that_fits_has_settings(
    model: ModelFacts, size: int, dtype: Dtype, cards: int
) -> None:
    small = plan(model, Gpu("", Fraction(size)), dtype=dtype, tensor_parallel=cards)
    large = plan(model, Gpu("", Fraction(size + 1)), dtype=dtype, tensor_parallel=cards)
    assert large.concurrency > small.concurrency
    assert small.fits is (small.concurrency >= 1) is bool(small.command)
    numbers = [small.max_num_seqs, small.workers, small.layout_batch, small.embed_batch_image]
    assert all(value >= 1 for value in numbers if value is not None) and small.fits is any(numbers)


@given(models, st.integers(1, 8))
def test_cards_that_share_a_model_hold_at_least_as_much_each(model: ModelFacts, cards: int) -> None:
    alone, shared = (plan(model, Gpu("", Fraction(500)), tensor_parallel=number) for number in (1, cards))
    assert shared.kv_gb >= alone.kv_gb
    assert shared.kv_kib_per_token * model.kv_heads >= model.kv_kib_per_token


def test_a_model_is_sized_by_its_own_files(tmp_path: Path) -> None:
    config = {"num_hidden_layers": 16, "num_key_value_heads": 8, "num_attention_heads": 16, "hidden_size": 2048}
    (tmp_path / "config.json").write_text(json.dumps({"text_config": {**config, "sliding_window": 4096}}))
    with pytest.raises(UsageError, match="no size of the weights"):
        model_facts(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(bytes(2**20))
    found = model_facts(str(tmp_path))
    assert (found.kv_kib_per_token, found.weights_gb["bf16"]) == (64, Fraction(1, 1024))
    assert "a sliding window" in found.notes[0]
    assert model_facts(str(tmp_path), billions=Fraction(2)).weights_gb["fp8"] == Fraction(21 * 10**8, 2**30)


@pytest.mark.parametrize(
    ("stored", "dtype", "size"),
    [
        (None, "fp8", Fraction(1, 2048)),
        ({"quant_method": "fp8"}, "fp8", Fraction(1, 1024)),
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "fp8", Fraction(1, 1024)),
    ],
)
def test_weights_that_are_stored_in_fp8_are_not_quantized_again(
    stored: object, dtype: str, size: Fraction, tmp_path: Path
) -> None:
    config = {"num_hidden_layers": 16, "num_key_value_heads": 8, "num_attention_heads": 16, "hidden_size": 2048}
    text = {"text_config": config} | ({"quantization_config": stored} if stored else {})
    (tmp_path / "config.json").write_text(json.dumps(text))
    (tmp_path / "model.safetensors").write_bytes(bytes(2**20))
    found = plan(model_facts(str(tmp_path)), gpu("H100"))
    assert (found.dtype, found.weights_gb) == (dtype, size)
    assert ("--quantization" in found.arguments) is (stored is None)
    if stored:
        with pytest.raises(UsageError, match="holds weights in FP8, not in BF16"):
            plan(model_facts(str(tmp_path)), gpu("H100"), dtype="bf16")


@pytest.mark.parametrize(("model", "told"), [("glm-ocr", True), ("someone/GLM-OCR-FP8", False)])
def test_a_repository_in_fp8_says_so_itself(model: str, told: bool) -> None:
    assert ("--quantization" in plan(model_facts(model), gpu("H100")).arguments) is told


@pytest.mark.parametrize(
    "text", ["[]", "{", "[" * 100_000, '{"num_hidden_layers": "x"}', '{"num_hidden_layers": 0}', "{}"]
)
def test_a_configuration_that_says_nothing_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UsageError):
        model_facts(str(tmp_path), billions=Fraction(1))


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "1/0", "1e999999999", "x" * 100, "9" * 30])
def test_only_numbers_above_nothing_are_numbers(text: str) -> None:
    with pytest.raises(UsageError):
        number(text, "--gpu")


def test_cards_have_names_and_sizes() -> None:
    assert [card.name for card in known_gpus()] == ["4090", "A6000/L40", "A100/H100", "H100 NVL", "B200"]
    assert (gpu("h100nvl").gb, gpu("a100").without_fp8, gpu("80").without_fp8, gpu("7").name) == (
        96,
        ("A100",),
        ("A100",),
        "",
    )


def test_the_command_prints_the_table_the_notes_and_the_server(tmp_path: Path) -> None:
    shown = loupe("size", "--gpu", "80", "--plain", cwd=tmp_path)
    assert shown.stdout.splitlines()[1].split("\t") == (
        ["80 GB A100/H100", "63.6 GB", "104", "65536", "131072", "8192", "256", "31", "104x"]
    )
    assert "--max-num-seqs 104" in shown.stdout and "A100: no FP8" in shown.stderr
    assert "-e glm-ocr --serve vllm" in shown.stderr and "--max-model-len 16384" in shown.stderr
    small = loupe("size", "--gpu", "8", "--json", cwd=tmp_path)
    assert (json.loads(small.stdout)[0]["fits"], small.returncode) == (False, 1)
    error, hint = complaint(loupe("size", "--model", "glm-ocrr", cwd=tmp_path))
    assert error.endswith("no model 'glm-ocrr'; did you mean 'glm-ocr'?") and "config.json" in hint


def test_what_vllm_would_not_start_with_is_said_and_the_length_that_fits_is_in_the_command(tmp_path: Path) -> None:
    model = model_facts("zai-org/GLM-OCR")
    small, large = (plan(model, gpu(size)) for size in ("16", "24GB"))
    assert (small.max_model_len, small.kv_gb_shown) == (131072, "6.0")
    assert "--max-model-len 98304" in small.command and "holds 98,304 tokens" in small.notes[0]
    assert "--max-model-len 131072" in large.command and large.notes == ()
    file = tmp_path / "config.json"
    file.write_text('{"num_hidden_layers": 16, "num_key_value_heads": 2, "num_attention_heads": 32, "head_dim": 64}')
    own = model_facts(str(file), billions=Fraction(1))
    said = {cards: bool(plan(own, gpu("b200"), tensor_parallel=cards).notes[1:]) for cards in (1, 2, 3, 4, 6, 8)}
    assert said == {1: False, 2: False, 3: True, 4: False, 6: True, 8: False}
    with pytest.raises(UsageError, match="no card of this name"):
        gpu("RTX9999")
