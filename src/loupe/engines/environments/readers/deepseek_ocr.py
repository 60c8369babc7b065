"""DeepSeek-OCR without a server: with Transformers in any resolution mode, or with vLLM's offline engine.

Transformers: Source: `infer()` of the model repository, `modeling_deepseekocr.py` (read from stored public copies);
docs/protocols/engines.md#deepseek-ocr. It is asked for its answer alone (`eval_mode`): to save results, it would run
`eval` on what the model wrote.

Its n-gram rule: no run of tokens may come a second time within a window, tags of cells excepted. Source:
`process/ngram_norepeat.py` of deepseek-ai/DeepSeek-OCR @ e4ac34e and vLLM's `NGramPerReqLogitsProcessor`. Tokens are
those of the answer alone, without the prompt.

vLLM: Source: vLLM's recipe for DeepSeek-OCR and `vllm/model_executor/models/deepseek_ocr.py`;
docs/protocols/engines.md#deepseek-ocr and #batch-back-ends. vLLM counts the places of a page for gundam alone, whatever
a request says, so this has no other mode.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

IMAGE = "<image>"
#: Side of the page for the vision encoder, by mode; gundam adds tiles.
_SIDES = {"tiny": 512, "small": 640, "base": 1024, "large": 1280, "gundam": 1024}
#: What the model was trained for; vLLM would take more from its configuration.
_CONTEXT = 8192


class WrongSettingError(Exception):
    """The settings contradict each other, or would run code that may change."""

    outcome = "usage"


def load(options: dict[str, Any]) -> tuple[Callable[[Any], dict[str, Any]], dict[str, str]]:
    """`backend` is "transformers" (any `mode`) or "vllm" (gundam alone); `tile` is the side of a tile in gundam.

    `ngram_size` and `window_size` are the n-gram rule, `allowed_tokens` may always repeat; size 0 leaves Transformers
    to `infer()` itself (no run of 35 twice) and vLLM without any rule.
    """
    check(options)
    read, facts = (with_vllm if options["backend"] == "vllm" else with_transformers)(options)
    return read, facts | {key: options[key] for key in ("model", "backend", "mode")}


def check(options: dict[str, Any]) -> None:
    """Raise WrongSettingError for a mode that cannot be, and for code that its owner may change at any time."""
    mode, tile, size, revision = (options[key] for key in ("mode", "tile", "ngram_size", "revision"))
    if options["backend"] == "vllm" and mode != "gundam":
        raise WrongSettingError(f'mode = "{mode}": vLLM has gundam alone; backend = "transformers" has all modes')
    if tile != 640 and mode != "gundam":
        raise WrongSettingError(f'mode = "{mode}": a model with tiles of {tile} pixels has gundam alone')
    if size < 0 or size == 1 or options["window_size"] < 1:
        raise WrongSettingError("ngram_size is 0 or at least 2, and window_size at least 1")
    pinned = re.fullmatch(r"[0-9a-f]{40}", revision)
    if not (pinned or options["unpinned_code"] or Path(options["model"]).is_dir()):
        what = f"revision {revision!r} is no commit" if revision else "no revision is given"
        raise WrongSettingError(
            f"{options['model']} brings code that runs here, and {what}: it may change at any time; "
            "use -o revision=COMMIT (40 characters), or -o unpinned_code=true"
        )


def with_transformers(options: dict[str, Any]) -> tuple[Callable[[Any], dict[str, Any]], dict[str, str]]:
    """The model on the GPU, as its README loads it."""
    import torch
    import transformers

    model, revision = options["model"], options["revision"]
    pinned = {"revision": revision} if revision else {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(model, trust_remote_code=True, **pinned)
    network = transformers.AutoModel.from_pretrained(
        model,
        _attn_implementation=options["attention"],
        trust_remote_code=True,
        use_safetensors=True,
        **pinned,
    )
    network = network.eval().cuda().to(torch.bfloat16)
    generation = Generation(network.generate, options, transformers.LogitsProcessorList)
    network.generate = generation
    tiled, side = options["mode"] == "gundam", _SIDES[options["mode"]]
    sizes = {"base_size": side, "image_size": options["tile"] if tiled else side, "crop_mode": tiled}

    def read(page: Any) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            text = network.infer(
                tokenizer,
                prompt=with_image(page.prompt),
                image_file=page.path,
                output_path=folder,
                **sizes,
                test_compress=False,
                save_results=False,
                eval_mode=True,
            )
        if not isinstance(text, str):
            raise TypeError(f"infer() gave {type(text).__name__} instead of a text")
        return {
            "text": text,
            "finish_reason": generation.finish_reason(tokenizer.eos_token_id),
            "input_tokens": generation.input_tokens,
            "output_tokens": len(generation.output_tokens),
        }

    commit = getattr(getattr(network, "config", None), "_commit_hash", None)
    return read, {"revision": str(commit or revision or "unknown")}


def with_image(prompt: str) -> str:
    r"""The prompt with the place of the image, which a chat template would have added.

    >>> with_image("Free OCR.")
    '<image>\nFree OCR.'
    """
    return prompt if IMAGE in prompt else f"{IMAGE}\n{prompt}"


@dataclass
class Generation:
    """The model's `generate` with our settings in place of those that `infer()` fixes, and what the last call spent."""

    generate: Callable[..., Any]
    options: dict[str, Any]
    processors: Callable[[list[Any]], Any]
    input_tokens: int = 0
    output_tokens: list[int] = field(default_factory=list)

    def __call__(self, input_ids: Any, **settings: Any) -> Any:
        """Generate; the tokens of prompt and answer stay here until the next call."""
        self.input_tokens, self.output_tokens = int(input_ids.shape[1]), []
        settings["max_new_tokens"] = self.options["max_tokens"]
        if self.options["ngram_size"]:
            # Transformers' own rule goes over the whole answer and spares no token: ours takes its place.
            settings["no_repeat_ngram_size"] = 0
            settings["logits_processor"] = self.processors([self._forbid_repeats])
        produced = self.generate(input_ids, **settings)
        self.output_tokens = produced[0, self.input_tokens :].tolist()
        return produced

    def finish_reason(self, end: int) -> str:
        """The end of the last answer: "stop" with the end token, else "length"."""
        ended = self.output_tokens[-1:] == [end] or len(self.output_tokens) < self.options["max_tokens"]
        return "stop" if ended else "length"

    def _forbid_repeats(self, input_ids: Any, scores: Any) -> Any:
        size, window = self.options["ngram_size"], self.options["window_size"]
        for row in range(input_ids.shape[0]):
            # The rule looks no further back, and what lies further back stays on the GPU.
            answer = input_ids[row, self.input_tokens :][-max(size, window) :].tolist()
            banned = banned_tokens(answer, size=size, window=window, allowed=self.options["allowed_tokens"])
            if banned:
                scores[row, sorted(banned)] = -float("inf")
        return scores


def banned_tokens(tokens: Sequence[int], *, size: int, window: int, allowed: Collection[int] = ()) -> set[int]:
    """Tokens that must not come next: each would end a run of `size` tokens which began among the last `window`.

    `size` is at least 2. `allowed` may always come.

    >>> banned_tokens([7, 8, 9, 7, 8], size=3, window=90)
    {9}
    """
    if len(tokens) < size:
        return set()
    opening = list(tokens[-(size - 1) :])
    starts = range(max(0, len(tokens) - window), len(tokens) - size + 1)
    found = {tokens[start + size - 1] for start in starts if list(tokens[start : start + size - 1]) == opening}
    return found - set(allowed)


def with_vllm(options: dict[str, Any]) -> tuple[Callable[[Any], dict[str, Any]], dict[str, str]]:
    """vLLM's offline engine. Raises WrongSettingError for a vLLM without the n-gram rule."""
    import vllm
    from PIL import Image

    revision = options["revision"]
    settings: dict[str, Any] = {
        "model": options["model"],
        "max_model_len": _CONTEXT,
        "trust_remote_code": True,
        "enable_prefix_caching": False,
        "mm_processor_cache_gb": 0,
    }
    settings |= dict.fromkeys(("revision", "code_revision", "tokenizer_revision"), revision) if revision else {}
    sampling: dict[str, Any] = {
        "temperature": 0.0,
        "max_tokens": options["max_tokens"],
        "skip_special_tokens": False,
    }
    if options["ngram_size"]:
        try:
            rule = import_module("vllm.model_executor.models.deepseek_ocr").NGramPerReqLogitsProcessor
        except (ImportError, AttributeError):
            raise WrongSettingError("this vLLM has no n-gram rule for DeepSeek-OCR; use -o ngram_size=0") from None
        settings["logits_processors"] = [rule]
        sampling["extra_args"] = {
            "ngram_size": options["ngram_size"],
            "window_size": options["window_size"],
            "whitelist_token_ids": list(options["allowed_tokens"]),
        }
    engine = vllm.LLM(**{**settings, **options["vllm"]})
    parameters = vllm.SamplingParams(**sampling)

    def read(page: Any) -> dict[str, Any]:
        with Image.open(page.path) as image:
            question = {
                "prompt": with_image(page.prompt),
                "multi_modal_data": {"image": image.convert("RGB")},
            }
        (answer,) = engine.generate([question], parameters, use_tqdm=False)
        (found,) = answer.outputs
        return {
            "text": found.text,
            "finish_reason": found.finish_reason,
            "input_tokens": len(answer.prompt_token_ids or ()) or None,
            "output_tokens": len(found.token_ids),
        }

    return read, {}
