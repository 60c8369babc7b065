"""The settings that fit a model on a card; every cell of the published tables (docs/sizing.md).

All arithmetic is exact: one of the published rows lies so near to a whole number that binary fractions miss it.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from loupe.errors import UsageError
from loupe.features.size.models_and_cards import GIB, Dtype, Gpu, ModelFacts

UTILIZATION = Fraction(9, 10)
_BATCHED_TOKENS = 65_536
_MAX_TOKENS = 8_192
_MOST_WORKERS, _WORKERS_PER_SEQUENCE = 256, 4
_MOST_BATCH = 64
_TEXT_BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """The plan. Settings that a stage does not have, and all of a model that does not fit, are None."""

    gpu: str
    gpu_gb: Fraction
    model: str
    dtype: Dtype
    tensor_parallel: int
    weights_gb: Fraction
    activation_gb: Fraction
    kv_gb: Fraction
    kv_kib_per_token: Fraction
    tokens_per_request: int
    concurrency: Fraction
    fits: bool
    max_model_len: int
    max_num_batched_tokens: int | None = None
    max_tokens: int | None = None
    max_num_seqs: int | None = None
    workers: int | None = None
    layout_batch: int | None = None
    embed_batch_image: int | None = None
    embed_batch_text: int | None = None
    arguments: tuple[str, ...] = ()
    command: str = ""
    notes: tuple[str, ...] = ()

    @property
    def kv_gb_shown(self) -> str:
        """With one decimal."""
        exact = Decimal(self.kv_gb.numerator) / Decimal(self.kv_gb.denominator)
        return str(exact.quantize(Decimal("0.1"), ROUND_HALF_UP))

    @property
    def concurrency_shown(self) -> int:
        """To the nearest whole number, where `max_num_seqs` is cut off."""
        return math.floor(self.concurrency + Fraction(1, 2))


def plan(
    model: ModelFacts,
    card: Gpu,
    *,
    dtype: Dtype | None = None,
    utilization: Fraction = UTILIZATION,
    tensor_parallel: int = 1,
) -> Sizing:
    """The settings for `tensor_parallel` cards of one kind. Weights and KV heads are divided, activation is not.

    `dtype` None: what the weights are stored in, else FP8. Raises UsageError for another one than that.
    """
    dtype = _dtype(model, dtype)
    weights = model.weights_gb[dtype] / tensor_parallel
    heads = max(Fraction(model.kv_heads, tensor_parallel), Fraction(1))
    kv_kib = model.kv_kib_per_token * heads / model.kv_heads
    kv_gb = utilization * card.gb - weights - model.activation_gb
    request_gb = model.tokens_per_request * kv_kib * 1024 / GIB
    concurrency = kv_gb / request_gb
    fits = concurrency >= 1
    settings = _settings(model, kv_gb, concurrency) if fits else {}
    notes = [*model.notes, *_fp8_notes(card, dtype)]
    held = math.floor(kv_gb * GIB / (kv_kib * 1024))
    length = _length(model, held)
    if fits and length < model.max_model_len:
        notes.append(
            f"{float(card.gb):g} GB: the cache holds {held:,} tokens, fewer than the {model.max_model_len:,} of one "
            f"longest sequence, with which vLLM does not start: the command says --max-model-len {length}"
        )
    notes += _sharing_notes(model, tensor_parallel)
    if not fits:
        missing = (request_gb - kv_gb) / utilization
        notes.append(f"does not fit: {float(missing):.1f} GB are missing for one request")
    arguments = _arguments(model, dtype, utilization, tensor_parallel, settings.get("max_num_seqs"), length)
    return Sizing(
        gpu=card.name,
        gpu_gb=card.gb,
        model=model.name,
        dtype=dtype,
        tensor_parallel=tensor_parallel,
        weights_gb=weights,
        activation_gb=model.activation_gb,
        kv_gb=kv_gb,
        kv_kib_per_token=kv_kib,
        tokens_per_request=model.tokens_per_request,
        concurrency=concurrency,
        fits=fits,
        max_model_len=model.max_model_len,
        arguments=tuple(arguments) if fits else (),
        command=shlex.join(["vllm", "serve", model.hub, *arguments]) if fits else "",
        notes=tuple(notes),
        **settings,
    )


def _dtype(model: ModelFacts, wanted: Dtype | None) -> Dtype:
    if model.stored and wanted and model.stored != wanted:
        raise UsageError(
            f"{model.hub} holds weights in {model.stored.upper()}, not in {wanted.upper()}",
            hint=f"leave the type out, or name another repository of {model.name}",
        )
    return wanted or model.stored or "fp8"


def _settings(model: ModelFacts, kv_gb: Fraction, concurrency: Fraction) -> dict[str, int]:
    if model.stage == "embedding":
        images = max(1, min(_MOST_BATCH, math.floor(concurrency / 2)))
        return {"embed_batch_image": images, "embed_batch_text": _TEXT_BATCH}
    sequences = math.floor(concurrency)
    return {
        "max_num_seqs": sequences,
        "max_num_batched_tokens": _BATCHED_TOKENS,
        "max_tokens": _MAX_TOKENS,
        "workers": min(_WORKERS_PER_SEQUENCE * sequences, _MOST_WORKERS),
        # No physics: the layout model lies outside the server's memory. The rule that gives all published rows.
        "layout_batch": max(1, min(_MOST_BATCH, math.floor(kv_gb / 2))),
    }


def _fp8_notes(card: Gpu, dtype: Dtype) -> list[str]:
    if dtype != "fp8" or not card.without_fp8:
        return []
    names = " and ".join(card.without_fp8)
    return [f"{names}: no FP8 arithmetic, only weights are kept in FP8; --dtype bf16 gives the plan without"]


def _length(model: ModelFacts, held: int) -> int:
    """The longest sequence that the cache holds, in whole 1024 where that is no less than a typical request."""
    rounded = held // 1024 * 1024
    return min(model.max_model_len, rounded if rounded >= model.tokens_per_request else held)


def _sharing_notes(model: ModelFacts, cards: int) -> list[str]:
    """vLLM divides attention heads evenly, and KV heads too, or repeats each of them equally often."""

    def works(count: int) -> bool:
        alike = model.kv_heads % count == 0 or count % model.kv_heads == 0
        return alike and (model.heads is None or model.heads % count == 0)

    if works(cards):
        return []
    of = f"{model.heads} attention heads and " if model.heads is not None else ""
    fitting = ", ".join(str(count) for count in range(1, 2 * cards) if works(count))
    return [f"--tp {cards}: vLLM does not start, for {of}{model.kv_heads} KV heads cannot be shared so; try {fitting}"]


def _arguments(
    model: ModelFacts, dtype: Dtype, utilization: Fraction, cards: int, sequences: int | None, length: int
) -> list[str]:
    """Those of `vllm serve`, each flag with its value behind it."""
    parts = ["--gpu-memory-utilization", f"{float(utilization):g}", "--max-model-len", str(length)]
    if sequences is not None:
        parts += ["--max-num-seqs", str(sequences), "--max-num-batched-tokens", str(_BATCHED_TOKENS)]
        # Long prompts share an iteration with answers that are being written.
        parts += ["--enable-chunked-prefill"]
    else:
        parts += ["--runner", "pooling"]
    parts += ["--quantization", "fp8"] if dtype == "fp8" and not model.quantized else []
    parts += ["--tensor-parallel-size", str(cards)] if cards > 1 else []
    return parts
