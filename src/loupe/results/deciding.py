"""The four settings that decide most gaps between two numbers of one engine, and are rarely published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from loupe.engines.registry import engine_module
from loupe.errors import ProfileError

#: By the keys of `PublishedRow.settings`, in the words of the tables.
DECIDING: Mapping[str, str] = MappingProxyType(
    {
        "joins": "joining of blocks",
        "margins": "headers and footers",
        "defaults": "sampling left to the server",
        "guards": "retries and loop guards",
    }
)
_BY_MODEL = "as the model writes them"
#: Steps that make a page of blocks, with an empty line between them, and what becomes of headers and footers.
_BLOCK_STEPS = {"dots_layout": "left out", "chandra_layout": "left out", "dots_layout_whole": "kept"}
#: What a server takes from the model's own generation_config where a request is silent.
_DEFAULTED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


def deciding(kind: str, defining: Mapping[str, Any], adapters: Sequence[str]) -> dict[str, str]:
    """Say what is known of the four here; "" for what only a vendor's package knows. {} for engines without models.

    `defining` are the settings of a profile or run that can change an answer.
    """
    way = said_of(kind, "WAY", defining)
    if not way:
        return {}
    in_blocks = next((margins for step, margins in _BLOCK_STEPS.items() if step in adapters), "")
    by_model = _BY_MODEL if way == "direct" else ""
    left = [key for key in _DEFAULTED if defining.get(key) in (None, "server")]
    return {
        "joins": "an empty line" if in_blocks else said_of(kind, "JOINS", defining) or by_model,
        "margins": in_blocks or said_of(kind, "MARGINS", defining) or by_model,
        "defaults": (", ".join(left) or "none") if "temperature" in defining else "",
        "guards": "; ".join(_guards(defining, adapters)) or "none",
    }


def said_of(kind: str, name: str, defining: Mapping[str, Any]) -> str:
    """`WAY`, `JOINS` or `MARGINS` as the settings, else the module of the engine's kind, have it; "" for nothing."""
    if own := defining.get(name.lower()):
        return str(own)
    try:
        return str(getattr(engine_module(kind), name, "")) if kind else ""
    except ProfileError:
        return ""


def _guards(defining: Mapping[str, Any], adapters: Sequence[str]) -> Iterator[str]:
    temperatures, reasons = defining.get("retry_temperatures"), defining.get("retry_if")
    if isinstance(temperatures, list) and temperatures:
        when = " or ".join(map(str, reasons)) if isinstance(reasons, list) and reasons else "truncated or repeated"
        yield f"if {when}, again at temperature {', '.join(map(str, temperatures))}"
    if defining.get("retry_truncated"):
        yield f"if truncated, again with {defining['retry_truncated']} tokens"
    body = defining.get("extra_body")
    arguments = body.get("vllm_xargs") if isinstance(body, dict) else None
    rule = arguments if isinstance(arguments, dict) else defining
    if rule.get("ngram_size"):
        yield f"no n-gram twice: size {rule['ngram_size']}, window {rule.get('window_size')}"
    regions = defining.get("region_adapters")
    steps = [*adapters, *(regions if isinstance(regions, list) else [])]
    yield from (f"{step} cuts loops" for step in steps if str(step).endswith("_repeats"))
