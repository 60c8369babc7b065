"""Stands in for vLLM's offline engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stand_in import note


class SamplingParams:
    """The sampling of a request."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings


class LLM:
    """The engine."""

    def __init__(self, model: str, **settings: Any) -> None:
        rules = [rule.__name__ for rule in settings.pop("logits_processors", [])]
        note("LLM", model=model, rules=rules, **settings)

    def generate(self, prompts: Any, sampling_params: SamplingParams, *, use_tqdm: bool = True) -> Any:
        """One answer for each question."""
        (question,) = prompts
        image = question["multi_modal_data"]["image"]
        note("generate", prompt=question["prompt"], image=[image.mode, *image.size], **sampling_params.settings)
        found = SimpleNamespace(text="Read.<｜end▁of▁sentence｜>", finish_reason="stop", token_ids=[5, 6, 7])
        return [SimpleNamespace(outputs=[found], prompt_token_ids=list(range(280)))]
