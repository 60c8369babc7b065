"""The vocabulary of both models: 400 byte-level tokens and the special ones of Qwen2-VL."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
VISION_START, VISION_END, IMAGE, VIDEO = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
SPECIAL = [END_OF_TEXT, START, END, VISION_START, VISION_END, "<|vision_pad|>", IMAGE, VIDEO]


def tokenizer() -> Tokenizer:
    """Trained on one sentence; every byte has a token."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator(["pages are read, lines are compared, and numbers are shown " * 4], trainer)
    return made


def save(folder: Path) -> dict[str, int]:
    """Write tokenizer.json; gives the numbers of the special tokens."""
    made = tokenizer()
    made.save(str(folder / "tokenizer.json"))
    return {word: made.token_to_id(word) for word in SPECIAL}
