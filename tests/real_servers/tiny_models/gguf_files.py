"""A random Llama and an image projector (Idefics3) as GGUF files for llama-server.

`python gguf_files.py FOLDER` writes model.gguf and mmproj.gguf; needs gguf, numpy and tokenizers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from tokens import END, END_OF_TEXT, SPECIAL, tokenizer

WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 2, 128, 4096
#: Sides of what the projector sees: a tile, a patch, and how many patches become one token (each way).
TILE, PATCH, SHUFFLE = 64, 16, 2
#: Words that the Idefics3 projector looks up.
LOOKED_UP = ["<fake_token_around_image>", "<global-img>"]
LOOKED_UP += [f"<row_{row}_col_{column}>" for row in range(1, 9) for column in range(1, 9)]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_random = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    """Small normal numbers."""
    return (_random.standard_normal(shape) * 0.05).astype(np.float32)


def ones(count: int) -> np.ndarray:
    """The weights of a norm."""
    return np.ones(count, np.float32)


def zeros(count: int) -> np.ndarray:
    """A bias."""
    return np.zeros(count, np.float32)


def close(writer: gguf.GGUFWriter) -> None:
    """Write what was added."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_words(writer: gguf.GGUFWriter) -> list[str]:
    """The vocabulary; gives the tokens that an answer may hold."""
    model = json.loads(tokenizer().to_str())["model"]
    words = [*sorted(model["vocab"], key=model["vocab"].__getitem__), "ĊĊ", *LOOKED_UP]
    control = {*SPECIAL, *LOOKED_UP}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(words)
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]])
    writer.add_token_types([gguf.TokenType.CONTROL if word in control else gguf.TokenType.NORMAL for word in words])
    writer.add_bos_token_id(words.index(END_OF_TEXT))
    writer.add_eos_token_id(words.index(END))
    writer.add_pad_token_id(words.index(END_OF_TEXT))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    return ["" if word in control or not (word.isascii() and word.isalpha()) else word for word in words]


def write_model(file: Path) -> None:
    """The Llama. It says letters only: broken UTF-8 or a special word is an error of the server's answer parser."""
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    said = add_words(writer)
    writer.add_vocab_size(len(said))
    output = random(len(said), WIDTH)
    output[[number for number, word in enumerate(said) if not word]] = 0
    tensors = {"token_embd": random(len(said), WIDTH), "output_norm": ones(WIDTH), "output": output}
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        tensors |= {at + name: random(WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
        tensors |= {at + name: ones(WIDTH) for name in ("attn_norm", "ffn_norm")}
        tensors |= {at + name: random(INNER, WIDTH) for name in ("ffn_gate", "ffn_up")}
        tensors[at + "ffn_down"] = random(WIDTH, INNER)
    for name, values in tensors.items():
        writer.add_tensor(f"{name}.weight", values)
    close(writer)


def write_projector(file: Path) -> None:
    """The image projector: one layer, tiles of 64 pixels."""
    writer = gguf.GGUFWriter(file, "clip")
    writer.add_name("tiny projector")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "idefics3")
    numbers = {"embedding_length": WIDTH, "feed_forward_length": INNER, "block_count": 1, "projection_dim": WIDTH}
    numbers |= {"attention.head_count": HEADS, "image_size": TILE, "patch_size": PATCH, "preproc_image_size": 256}
    for name, value in {**numbers, "projector.scale_factor": SHUFFLE}.items():
        writer.add_uint32(f"clip.vision.{name}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_bool("clip.use_gelu", True)
    writer.add_array("clip.vision.image_mean", [0.5] * 3)
    writer.add_array("clip.vision.image_std", [0.5] * 3)
    writer.add_tensor("v.position_embd.weight", random((TILE // PATCH) ** 2, WIDTH))
    writer.add_tensor("mm.model.fc.weight", random(WIDTH, WIDTH * SHUFFLE**2))
    weights = {"v.patch_embd": random(WIDTH, 3, PATCH, PATCH), "v.post_ln": ones(WIDTH)}
    weights |= {f"v.blk.0.{name}": ones(WIDTH) for name in ("ln1", "ln2")}
    weights |= {f"v.blk.0.{name}": random(WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_out")}
    weights |= {"v.blk.0.ffn_up": random(INNER, WIDTH), "v.blk.0.ffn_down": random(WIDTH, INNER)}
    for name, values in weights.items():
        writer.add_tensor(f"{name}.weight", values)
        writer.add_tensor(f"{name}.bias", zeros(len(values)))
    close(writer)


if __name__ == "__main__":
    write_model(Path(sys.argv[1]) / "model.gguf")
    write_projector(Path(sys.argv[1]) / "mmproj.gguf")
