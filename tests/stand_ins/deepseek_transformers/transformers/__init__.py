"""Stands in for Transformers with DeepSeek-OCR's model repository: it says 1 2 3 for ever, unless forbidden."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from stand_in import look_at, note, wanted

END, WORDS = 9, 10


class LogitsProcessorList(list[Any]):
    """Applies one rule after the other."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        for each in self:
            scores = each(input_ids, scores)
        return scores


class AutoTokenizer:
    """The tokenizer: nothing but its end token is needed."""

    @staticmethod
    def from_pretrained(name: str, **settings: Any) -> Any:
        note("tokenizer", name=name, **settings)
        return SimpleNamespace(eos_token_id=END)


class AutoModel:
    """The model."""

    @staticmethod
    def from_pretrained(name: str, **settings: Any) -> Any:
        note("model", name=name, **settings)
        return _Model()


class _Model:
    config = SimpleNamespace(_commit_hash="c0ffee")

    def eval(self) -> _Model:
        return self

    def cuda(self) -> _Model:
        return self

    def to(self, kind: str) -> _Model:
        note("to", kind=kind)
        return self

    def generate(self, input_ids: Any, **settings: Any) -> Any:
        """Greedy: 1 2 3 1 2 3 ..., and the end where the next word is forbidden."""
        rules = settings.pop("logits_processor", LogitsProcessorList())
        note("generate", rules=len(rules), **settings)
        for step in range(settings["max_new_tokens"]):
            scores = np.zeros((1, WORDS))
            scores[0, 1 + step % 3], scores[0, END] = 2.0, 1.0
            best = int(np.argmax(rules(input_ids, scores)[0]))
            input_ids = np.concatenate([input_ids, [[best]]], axis=1)
            if best == settings["eos_token_id"]:
                break
        return input_ids

    def infer(
        self,
        tokenizer: Any,
        prompt: str = "",
        image_file: str = "",
        output_path: str = "",
        base_size: int = 1024,
        image_size: int = 640,
        crop_mode: bool = True,
        test_compress: bool = False,
        save_results: bool = False,
        eval_mode: bool = False,
    ) -> str | None:
        """As in the model repository: an answer in eval mode alone, and the model's own settings of `generate`."""
        assert Path(output_path).is_dir()
        note("infer", prompt=prompt, sizes=[base_size, image_size, crop_mode], saved=save_results)
        if wanted(Path(image_file).stem) == "silent":
            return None
        look_at(image_file)
        side = (base_size if crop_mode else image_size) // 64
        length = 1 + (side + 1) * side + 1 + 5
        start = np.full((1, length), 1)
        produced = self.generate(start, eos_token_id=END, max_new_tokens=8192, no_repeat_ngram_size=35, use_cache=True)
        words = [str(word) for word in produced[0, length:].tolist() if word != END]
        return " ".join(words) if eval_mode and "<image>" in prompt else None
