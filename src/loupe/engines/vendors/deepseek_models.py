"""Load DeepSeek-OCR with Transformers or with vLLM's offline engine, and its n-gram rule.

Transformers: Source: `modeling_deepseekocr.py` of the model repository (read from stored public copies);
docs/protocols/engines.md#deepseek-ocr. `infer()` is asked for its answer alone (`eval_mode`): to save results, it would
run `eval` on what the model wrote.

Its n-gram rule: no run of tokens may come a second time within a window, tags of cells excepted. Source:
`process/ngram_norepeat.py` of deepseek-ai/DeepSeek-OCR @ e4ac34e and vLLM's `NGramPerReqLogitsProcessor`. Tokens are
those of the answer alone, without the prompt.

vLLM: Source: vLLM's recipe for DeepSeek-OCR and `vllm/model_executor/models/deepseek_ocr.py`;
docs/protocols/engines.md#deepseek-ocr and #batch-back-ends. vLLM counts the places of a page for gundam alone, whatever
a request says, so this has no other mode.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from loupe.engines.vendors.outbound import Outbound, loading, reading_here
from loupe.engines.workers.worker import Loaded
from loupe.errors import EngineError, MissingToolError
from loupe.files.scratch import scratch_folder
from loupe.types import Output, Request

IMAGE = "<image>"


def load_transformers(
    *,
    model: str,
    revision: str,
    max_tokens: int,
    rule: Mapping[str, Any],
    sizes: Mapping[str, Any],
    attention: str,
    download: bool,
) -> Loaded:
    """The engine as a worker uses it: the model on the GPU, as its README loads it."""
    torch, transformers = import_module("torch"), import_module("transformers")
    pinned = {"revision": revision} if revision else {}
    outbound, models = Outbound(), f"hf download {model}" + (f" --revision {revision}" if revision else "")
    with loading(outbound, download=download, package="transformers", models=models):
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, trust_remote_code=True, **pinned)
        network = transformers.AutoModel.from_pretrained(
            model, _attn_implementation=attention, trust_remote_code=True, use_safetensors=True, **pinned
        )
    network = network.eval().cuda().to(torch.bfloat16)
    generation = Generation(network.generate, max_tokens, rule, transformers.LogitsProcessorList)
    network.generate = generation

    def read(request: Request) -> Output:
        (path,) = request.images
        with scratch_folder("loupe-deepseek-") as folder:
            text = network.infer(
                tokenizer,
                prompt=with_image(request.prompt),
                image_file=str(path),
                output_path=str(folder),
                **sizes,
                test_compress=False,
                save_results=False,
                eval_mode=True,
            )
        if not isinstance(text, str):
            raise EngineError(f"infer() gave {type(text).__name__} instead of a text")
        return Output(
            text=text,
            finish_reason=generation.finish_reason(tokenizer.eos_token_id),
            input_tokens=generation.input_tokens,
            output_tokens=len(generation.output_tokens),
        )

    commit = getattr(getattr(network, "config", None), "_commit_hash", None)
    return Loaded(
        read=reading_here(read, outbound, package="transformers", models=models),
        facts={"revision": str(commit or revision or "unknown")},
    )


def with_image(prompt: str) -> str:
    r"""The prompt with the place of the image, which a chat template would have added.

    >>> with_image("Free OCR.")
    '<image>\nFree OCR.'
    """
    return prompt if IMAGE in prompt else f"{IMAGE}\n{prompt}"


@dataclass(slots=True)
class Generation:
    """The model's `generate` with our settings in place of those that `infer()` fixes, and what the last call spent."""

    generate: Callable[..., Any]
    max_tokens: int
    rule: Mapping[str, Any]
    processors: Callable[[list[Any]], Any]
    input_tokens: int = 0
    output_tokens: list[int] = field(default_factory=list)

    def __call__(self, input_ids: Any, **settings: Any) -> Any:
        """Generate; the tokens of prompt and answer stay here until the next call."""
        self.input_tokens, self.output_tokens = int(input_ids.shape[1]), []
        settings["max_new_tokens"] = self.max_tokens
        if self.rule["size"]:
            # Transformers' own rule goes over the whole answer and spares no token: ours takes its place.
            settings["no_repeat_ngram_size"] = 0
            settings["logits_processor"] = self.processors([self._forbid_repeats])
        produced = self.generate(input_ids, **settings)
        self.output_tokens = produced[0, self.input_tokens :].tolist()
        return produced

    def finish_reason(self, end: int) -> str:
        """How the last answer ended: "stop" with the end token, else "length"."""
        return "stop" if self.output_tokens[-1:] == [end] or len(self.output_tokens) < self.max_tokens else "length"

    def _forbid_repeats(self, input_ids: Any, scores: Any) -> Any:
        size, window = self.rule["size"], self.rule["window"]
        for row in range(input_ids.shape[0]):
            # The rule looks no further back, and what lies further back stays on the GPU.
            answer = input_ids[row, self.input_tokens :][-max(size, window) :].tolist()
            banned = banned_tokens(answer, size=size, window=window, allowed=self.rule["allowed"])
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


_RULES = "vllm.model_executor.models.deepseek_ocr"
#: What the model was trained for; vLLM would take more from its configuration.
_CONTEXT = 8192


def load_vllm(
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
