"""Facts about models and cards: measured facts (`facts.toml`), or a model's own `config.json`."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from loupe.errors import UsageError, did_you_mean
from loupe.files.foreign import real_path

Dtype = Literal["fp8", "bf16"]
#: Bytes of one parameter, and what files hold beside them.
_BYTES: dict[Dtype, int] = {"fp8": 1, "bf16": 2}
_OVERHEAD = Fraction(105, 100)
#: What names of repositories say that hold the weights of a model in FP8 or as they were.
_PACKED = re.compile(r"[-_](?:(?P<fp8>fp8(?:[-_]dynamic)?)|bf16)$", re.I)
#: Measured once for GLM-OCR, taken for every model.
ACTIVATION_GB = Fraction(7)
GIB = 2**30
#: Parts of a configuration with which a cache is smaller than the simple formula says.
_SMALLER_CACHE = {
    "sliding_window": "a sliding window",
    "layer_types": "layers of several kinds",
    "kv_lora_rank": "a compressed cache (MLA)",
    "num_experts": "experts",
    "n_routed_experts": "experts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The facts that sizing needs about a model. `stage` decides which settings it has: OCR with a layout model, or
    embedding.

    `stored` is what its weights are stored in, where name or configuration say so; None: they are what one makes of
    them. Weights that are stored `quantized` need no word to the server: their own configuration says how.
    """

    name: str
    stage: Literal["ocr", "embedding"]
    hub: str
    weights_gb: dict[Dtype, Fraction]
    activation_gb: Fraction
    kv_kib_per_token: Fraction
    kv_heads: int
    tokens_per_request: int
    max_model_len: int
    heads: int | None = None
    stored: Dtype | None = None
    quantized: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """A card: its marketing size, and the cards of that size that do not multiply in FP8."""

    name: str
    gb: Fraction
    without_fp8: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def _facts() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "facts.toml").read_text(encoding="utf-8"))


def known_models() -> list[str]:
    """The models with measured facts."""
    return list(_facts()["models"])


def known_cards() -> list[Gpu]:
    """Every card that is known by name."""
    return [gpu(name) for name in _facts()["gpus"]]


def known_gpus() -> list[Gpu]:
    """One card per size, as in the published tables."""
    sizes = dict.fromkeys(facts["gb"] for facts in _facts()["gpus"].values())
    return [gpu(str(size)) for size in sizes]


def gpu(text: str) -> Gpu:
    """A card by name, or any size in GB. Raises UsageError for anything else."""
    cards = _facts()["gpus"]
    named = {name.lower().replace(" ", ""): name for name in cards}
    name = named.get(text.lower().replace(" ", "").replace("-", ""))
    if name is not None:
        facts = cards[name]
        return Gpu(name, Fraction(facts["gb"]), () if facts["fp8"] else (name,))
    hint = f"a size in GB, or one of {', '.join(cards)}"
    if text[:1].isalpha():
        raise UsageError(f"GPU {text[:40]}: no card of this name is known{did_you_mean(text, cards)}", hint=hint)
    size = number(text.lower().removesuffix("gb").strip(), "GPU", hint=hint)
    same = {name: facts for name, facts in cards.items() if facts["gb"] == size}
    return Gpu("/".join(same), size, tuple(name for name, facts in same.items() if not facts["fp8"]))


def number(text: str, what: str, *, hint: str = "") -> Fraction:
    """An exact number above 0. Raises UsageError that names the option."""
    try:
        value = Fraction(text) if len(text) <= 20 and "e" not in text.lower() else None
    except (ValueError, ZeroDivisionError):
        value = None
    if value is None or value <= 0:
        raise UsageError(f"{what} {text[:40]}: not a number above 0", hint=hint)
    return value


def kv_kib(layers: int, kv_heads: int, head_dim: int, *, bytes_per_element: int = 2) -> Fraction:
    """KiB of cache for one token: keys and values of every layer."""
    return Fraction(2 * layers * kv_heads * head_dim * bytes_per_element, 1024)


def model_facts(name: str, *, billions: Fraction | None = None, tokens: int | None = None) -> ModelFacts:
    """The facts of a model by name, or of a folder with `config.json`. `billions` of parameters replace its files.

    Raises UsageError for an unknown name and for a configuration that does not say enough.
    """
    known = _facts()["models"]
    path = Path(name)
    meant, stored = ("", None) if path.exists() else _known_model(name)
    if meant:
        facts = known[meant]
        return ModelFacts(
            name=meant,
            stage=facts["stage"],
            hub=name if "/" in name else facts["hub"],
            stored=stored,
            quantized=stored == "fp8",
            notes=tuple(facts.get("notes", ())),
            weights_gb={dtype: Fraction(size) for dtype, size in facts["weights_gb"].items()},
            activation_gb=Fraction(facts["activation_gb"]),
            kv_kib_per_token=Fraction(facts["kv_kib_per_token"]),
            kv_heads=facts["kv_heads"],
            tokens_per_request=tokens or facts["tokens_per_request"],
            max_model_len=facts["max_model_len"],
        )
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        known_names = ", ".join(known)
        raise UsageError(
            f"no model {name!r}{did_you_mean(name, known)}",
            hint=f"{known_names}, or a folder with config.json; other models are not downloaded from here",
        )
    return _from_config(file, billions=billions, tokens=tokens)


def _known_model(name: str) -> tuple[str, Dtype | None]:
    """The model with facts that is called so, by whomever and in whatever packing, and what its weights are stored in.

    >>> _known_model("Forturne/Qwen3-VL-Embedding-2B-FP8")
    ('qwen3-vl-embedding-2b', 'fp8')
    """
    own = name.rpartition("/")[2]
    packed = _PACKED.search(own)
    plain = (own[: packed.start()] if packed else own).lower()
    stored: Dtype | None = None if packed is None else "fp8" if packed["fp8"] else "bf16"
    return (plain, stored) if plain in known_models() else ("", None)


def _from_config(file: Path, *, billions: Fraction | None, tokens: int | None) -> ModelFacts:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: {error.__class__.__name__}: {error}") from None
    stored = config.get("quantization_config") if isinstance(config, dict) else None
    if isinstance(config, dict) and isinstance(config.get("text_config"), dict):
        config = config["text_config"]
        stored = stored or config.get("quantization_config")
    if not isinstance(config, dict):
        raise UsageError(f"{file}: not a table")
    heads = _whole(config, "num_attention_heads", file, default=_get(config, "num_key_value_heads"))
    kv_heads = _whole(config, "num_key_value_heads", file, default=heads)
    hidden = _get(config, "hidden_size")
    head_dim = _whole(config, "head_dim", file, default=hidden // heads if hidden else None)
    smaller = dict.fromkeys(words for key, words in _SMALLER_CACHE.items() if config.get(key))
    notes = [f"the model has {' and '.join(smaller)}: its cache is smaller than computed here"] if smaller else []
    notes.append(f"activation memory is taken to be {float(ACTIVATION_GB)} GB, as measured for GLM-OCR")
    return ModelFacts(
        name=real_path(file).parent.name,
        stage="ocr",
        hub=str(file.parent),
        weights_gb=_weights(file.parent, billions, packed=bool(stored)),
        stored="fp8" if _is_fp8(stored) else None,
        quantized=bool(stored),
        activation_gb=ACTIVATION_GB,
        kv_kib_per_token=kv_kib(_whole(config, "num_hidden_layers", file), kv_heads, head_dim),
        kv_heads=kv_heads,
        tokens_per_request=tokens or 10_000,
        max_model_len=_whole(config, "max_position_embeddings", file, default=32_768),
        heads=heads,
        notes=tuple(notes),
    )


def _is_fp8(stored: object) -> bool:
    """True if a `quantization_config` says FP8, in the words of vLLM, or of compressed-tensors and ModelOpt."""
    words = json.dumps(stored).lower()
    return "fp8" in words or "float-quantized" in words


def _weights(folder: Path, billions: Fraction | None, *, packed: bool) -> dict[Dtype, Fraction]:
    """Parameters times their size and 5 %; else the files, as they are for BF16 and halved for FP8.

    Files that are `packed` already stay as they are.
    """
    if billions is not None:
        return {dtype: billions * 10**9 * size * _OVERHEAD / GIB for dtype, size in _BYTES.items()}
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    if not size:
        raise UsageError(
            f"{folder}: no *.safetensors, so no size of the weights", hint="use --parameters 2.1 (billions)"
        )
    return {"bf16": Fraction(size, GIB), "fp8": Fraction(size, GIB if packed else 2 * GIB)}


def _get(config: dict[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and 0 < value < 10**9 else None


def _whole(config: dict[str, Any], key: str, file: Path, *, default: int | None = None) -> int:
    value = _get(config, key) or default
    if not value:
        raise UsageError(f"{file}: no {key} above 0")
    return value
