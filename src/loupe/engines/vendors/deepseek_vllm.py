"""DeepSeek-OCR with vLLM's offline engine, and the n-gram rule that vLLM has for this model.

Source: vLLM's recipe for DeepSeek-OCR and `vllm/model_executor/models/deepseek_ocr.py`;
docs/protocols/engines.md#deepseek-ocr and #batch-back-ends. vLLM counts the places of a page for gundam alone, whatever
a request says, so this has no other mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from loupe.engines.vendors.deepseek_transformers import with_image
from loupe.engines.vendors.outbound import Outbound, loading, reading_here
from loupe.engines.workers.worker import Loaded
from loupe.errors import MissingToolError
from loupe.types import Output, Request

_RULES = "vllm.model_executor.models.deepseek_ocr"
#: What the model was trained for; vLLM would take more from its configuration.
_CONTEXT = 8192


def load(
    *,
    model: str,
    revision: str,
    max_tokens: int,
    rule: Mapping[str, Any],
    options: Mapping[str, Any],
    download: bool,
) -> Loaded:
    """The engine as a worker uses it. Raises MissingToolError for a vLLM without the n-gram rule."""
    vllm = import_module("vllm")
    settings: dict[str, Any] = {
        "model": model,
        "max_model_len": _CONTEXT,
        "trust_remote_code": True,
        "enable_prefix_caching": False,
        "mm_processor_cache_gb": 0,
    }
    settings |= dict.fromkeys(("revision", "code_revision", "tokenizer_revision"), revision) if revision else {}
    sampling: dict[str, Any] = {"temperature": 0.0, "max_tokens": max_tokens, "skip_special_tokens": False}
    if rule["size"]:
        settings["logits_processors"] = [_rule()]
        sampling["extra_args"] = {
            "ngram_size": rule["size"],
            "window_size": rule["window"],
            "whitelist_token_ids": list(rule["allowed"]),
        }
    outbound, models = Outbound(), f"hf download {model}" + (f" --revision {revision}" if revision else "")
    with loading(outbound, download=download, package="vllm", models=models):
        engine = vllm.LLM(**{**settings, **options})
    parameters = vllm.SamplingParams(**sampling)

    def read(request: Request) -> Output:
        from loupe.data.pages import load_page

        image = load_page(request.images[0])
        question = {"prompt": with_image(request.prompt), "multi_modal_data": {"image": image}}
        (answer,) = engine.generate([question], parameters, use_tqdm=False)
        (found,) = answer.outputs
        return Output(
            text=found.text,
            finish_reason=found.finish_reason,
            input_tokens=len(answer.prompt_token_ids or ()) or None,
            output_tokens=len(found.token_ids),
        )

    return Loaded(read=reading_here(read, outbound, package="vllm", models=models))


def _rule() -> Any:
    try:
        return import_module(_RULES).NGramPerReqLogitsProcessor
    except (ImportError, AttributeError):
        raise MissingToolError(
            "this vLLM has no n-gram rule for DeepSeek-OCR", hint="pip install 'vllm>=0.11.1', or -o ngram_size=0"
        ) from None
