"""A random Qwen2-VL as a folder that vLLM and mlx-vlm load.

`python qwen2vl_folder.py FOLDER [mlx]`; needs torch, transformers and tokenizers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from tokens import END, END_OF_TEXT, IMAGE, SPECIAL, VIDEO, VISION_END, VISION_START, save
from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

ROPE = {"rope_type": "default", "mrope_section": [8, 12, 12], "rope_theta": 10000.0}
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}"
    "{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] in ('image', 'image_url') %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}"
    "{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write(folder: Path) -> None:
    """The tokenizer, the settings and the weights (0.7 million numbers)."""
    folder.mkdir(parents=True, exist_ok=True)
    special = save(folder)
    files: dict[str, dict[str, Any]] = {
        "tokenizer_config.json": {
            "tokenizer_class": "Qwen2TokenizerFast",
            "eos_token": END,
            "pad_token": END_OF_TEXT,
            "additional_special_tokens": SPECIAL[1:],
            "chat_template": TEMPLATE,
            "model_max_length": 4096,
            "clean_up_tokenization_spaces": False,
        },
        "preprocessor_config.json": {
            "image_processor_type": "Qwen2VLImageProcessor",
            "processor_class": "Qwen2VLProcessor",
            "min_pixels": 3136,
            "max_pixels": 1003520,
            "patch_size": 14,
            "temporal_patch_size": 2,
            "merge_size": 2,
            "image_mean": [0.5] * 3,
            "image_std": [0.25] * 3,
        },
        "generation_config.json": {
            "eos_token_id": [special[END], special[END_OF_TEXT]],
            "pad_token_id": special[END_OF_TEXT],
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    torch.manual_seed(0)
    Qwen2VLForConditionalGeneration(config(special)).to(torch.float32).save_pretrained(folder)


def config(special: dict[str, int]) -> Qwen2VLConfig:
    """Two layers; heads of 64, which vLLM's attention on a CPU knows."""
    ids = {"bos_token_id": special[END_OF_TEXT], "eos_token_id": special[END], "pad_token_id": special[END_OF_TEXT]}
    text = {"vocab_size": 512, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2}
    text |= {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 4096}
    vision = {"depth": 1, "embed_dim": 64, "hidden_size": 128, "num_heads": 2, "mlp_ratio": 2, "patch_size": 14}
    vision |= {"spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3}
    return Qwen2VLConfig(
        text_config={**text, **ids, "tie_word_embeddings": False, "rope_parameters": ROPE},
        vision_config=vision,
        image_token_id=special[IMAGE],
        video_token_id=special[VIDEO],
        vision_start_token_id=special[VISION_START],
        vision_end_token_id=special[VISION_END],
        tie_word_embeddings=False,
    )


def settle_for_mlx(folder: Path) -> None:
    """mlx-vlm reads the keys of the text model at the top, and the older name of the rotation's sections."""
    file = folder / "config.json"
    written = json.loads(file.read_text(encoding="utf-8"))
    written = {**written["text_config"], **written, "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]}}
    written["vision_config"]["model_type"] = "qwen2_vl"
    file.write_text(json.dumps(written), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
    if sys.argv[2:] == ["mlx"]:
        settle_for_mlx(Path(sys.argv[1]))
