"""Folders of documents of one's own, selections, profiles and settings, as somebody else may have sent them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path

from tests.hostile import mutations
from tests.hostile.cases import Command, Target, World, choose, command
from tests.hostile.run_folders import RUNS, SAMPLES, write_answers, write_docs

PROFILE = """kind = "openai"
title = "A model"
model = "vendor/model"
base_url = "http://127.0.0.1:9/v1"
max_tokens = 4096
temperature = 0.0
image = "fit2048"
top_p = 0.5

[prompts]
text = "Transcribe."
"""
ENGINES = """
[engines.mine]
kind = "predictions"
folder = "answers"

[engines.reader]
kind = "python"
function = "evil.py:read"
"""
MODELS = 'vlm = ["vendor/a", "vendor/b"]\ntextllm = ["vendor/c"]\n'
TRUTH = {
    "date": "2025-01-02",
    "documentType": "invoice",
    "isMatch": True,
    "secondaryField": "Harbour Ltd",
    "metadata": {"generatedAt": "2026-11-22T10:00:00Z", "textModel": "a", "vlmModel": "b", "verified": True},
}
SIZES = {
    **{"architectures": ["GlmOcrForConditionalGeneration"], "hidden_size": 1536, "num_hidden_layers": 16},
    **{"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128},
    **{"max_position_embeddings": 32768, "sliding_window": None},
}


def own_template(world: World) -> None:
    """A folder with drafts and verified truth, and answers beside it."""
    docs = world.case / "docs"
    write_docs(docs)
    draft = {"status": "draft", "engines": ["a", "b"], "differs": ["reference"], "drafts": {"a": "1", "b": None}}
    checked = {"status": "verified", "by": "Ada", "at": "2026-11-22T04:00:00Z"}
    rows = [dict(row, truth=truth) for row, truth in zip(SAMPLES, [checked, draft, checked] * 3, strict=False)]
    rows[1]["reference"] = None
    (docs / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_answers(world.case / "answers")


def make_own(dice: random.Random, world: World) -> Sequence[Command]:
    """A mutated folder, checked, shown, read, reviewed, begun anew and drafted."""
    docs = world.case / "docs"
    calm = isinstance(dice, mutations.Calm)
    if dice.random() < 0.2 and not calm:
        (docs / "samples.jsonl").unlink()
        if dice.random() < 0.5:
            (docs / "loupe.toml").unlink()
    elif dice.random() < 0.15 and not calm:
        with (docs / "loupe.toml").open("a") as file:
            file.write(dice.choice(mutations.TOML_LINES))
        return [command("run", ".", "-e", "pdf_text", "-j", "1", "--allow-unverified", cwd="docs")]
    mutations.mutate(dice, docs, world.canary)
    cheap = (
        command("bench", "check", "docs"),
        command("bench", "check", "docs", "--json"),
        command("bench", "check", ".", cwd="docs"),
        command("bench", "show", "docs"),
        command("bench", "show", "docs", "--json"),
        command("init", "docs", "--task", "fields", "--field", "total:amount"),
        command("init", "docs", "--task", dice.choice(["text", "class", "table"])),
        command("init", ".", cwd="docs"),
        command("engine", "list", cwd="docs"),
        command("engine", "show", "pdf_text", cwd="docs"),
        command("data", "pack", "docs", "-o", "docs.tar"),
        command("compress", "docs", "--dry-run", "--mode", "base", "-o", "allow_unverified=true"),
    )
    dear = (
        command("review", "docs"),
        command("review", "tests", "docs/samples.jsonl"),
        command("run", "docs", "-e", world.reader, "-j", "1", "--allow-unverified"),
        command("infer", "docs", "-e", world.reader, "-o", "allow_unverified=true"),
        command("run", ".", "-e", "pdf_text", "-j", "1", "--allow-unverified", cwd="docs"),
        command("draft", "docs", "-e", "predictions:answers"),
        command("draft", "docs", "-e", world.reader, "--limit", "2"),
        command("score", "docs", "answers", "-j", "1", "-o", "allow_unverified=true"),
        command("data", "prepare", "docs", "--to", "prepared", "-o", "allow_unverified=true"),
    )
    chosen = choose(dice, cheap, dear)
    return chosen if (docs.is_dir()) else [each for each in chosen if each.cwd == "."]


def selection_template(world: World) -> None:
    """Documents of one type and others, with ground truth beside them, and a saved selection."""
    from tests.support.pages import draw_page
    from tests.support.web.review_app import PDF

    for name, match in (("positive", True), ("negative", False)):
        folder = world.case / "papers" / name
        folder.mkdir(parents=True)
        draw_page(folder / "a.png", ("Invoice 1",))
        (folder / "b.pdf").write_bytes(PDF)
        for file in ("a.json", "b.json"):
            (folder / file).write_text(json.dumps(TRUTH | {"isMatch": match}))
    documents = [
        {
            "path": f"../papers/{name}/a.png",
            "positive": name == "positive",
            "text": "x",
            "date": "2025-01-02",
            "name": "y",
        }
        for name in ("positive", "negative")
    ]
    for phase in ("a", "b"):
        (world.case / phase).mkdir()
        saved = {"phase": phase, "document_type": "invoice", "documents": documents}
        (world.case / phase / "selection.json").write_text(json.dumps(saved))
    (world.case / "models.toml").write_text(MODELS)
    (world.case / "models.json").write_text(json.dumps({"vlm": ["a"], "textllm": ["b"]}))


def make_selection(dice: random.Random, world: World) -> Sequence[Command]:
    """Mutated documents, ground truth, lists of models and saved selections."""
    mutations.mutate(dice, dice.choice([world.case, world.case / "papers"]), world.canary)
    server = (
        "--base-url",
        "http://127.0.0.1:9",
        "--vlm",
        "a",
        "--textllm",
        "b",
        "--ocr",
        "pdf_text",
        "--timeout",
        "10",
    )
    folders = ("--type", "invoice", "--positive", "papers/positive", "--negative", "papers/negative")
    models = dice.choice(["models.toml", "models.json"])
    cheap = (
        command("review", "papers", "--type", "invoice"),
        command("review", "papers/positive", "--type", "invoice"),
        command("init", "papers", "--task", "class"),
        command("init", "papers/positive", "--task", "text", "--json"),
        command("bench", "check", "papers"),
        command("infer", "a", "-e", "predictions:papers"),
        command("infer", "b", "-e", "predictions:papers"),
        command("select", *folders, "--models", models, "--base-url", "http://127.0.0.1:9", "--phase", "a"),
    )
    dear = (
        command("run", "b", "-e", world.reader, "-j", "1"),
        command("run", "a", "-e", world.reader, "-j", "1"),
        command("select", *folders, *server, "--ground-truth", "reuse", "--yes"),
        command("select", *folders, *server, "--ground-truth", "regenerate"),
    )
    return choose(dice, cheap, dear)


def settings_template(world: World) -> None:
    """A folder in which somebody works: profiles, prompts, a model's configuration, queries and regions."""
    from tests.support.web.review_app import make_set

    (world.case / "loupe.toml").write_text(ENGINES)
    (world.case / "profile.toml").write_text(PROFILE)
    (world.case / "prompt.txt").write_text("Read the page.\n")
    (world.case / "model").mkdir()
    (world.case / "model" / "config.json").write_text(json.dumps(SIZES))
    make_set(world.case / "tests")
    write_docs(world.case / "docs")


def make_settings(dice: random.Random, world: World) -> Sequence[Command]:
    """Profiles here and in the home of the user, and other files that are named on the command line."""
    name = dice.choice(["mine", "glm-ocr", "x"])
    if dice.random() < 0.5:
        mutations.bend_file(dice, world.case / dice.choice(["loupe.toml", "profile.toml", "profile.toml"]))
    if dice.random() < 0.8:
        mutations.mutate(dice, world.case, world.canary)
    own = world.home / ".config" / "loupe" / "engines"
    own.mkdir(parents=True)
    profile = world.case / "profile.toml"
    if profile.is_file() and not profile.is_symlink():
        os.replace(profile, own / f"{name}.toml")  # noqa: PTH105
    cheap = (
        command("engine", "list"),
        command("engine", "list", "--json"),
        command("engine", "show", name),
        command("engine", "show", "reader"),
        command("engine", "show", "pdf_text"),
        command("engine", "show", name, "--json"),
        command("run", "docs", "-e", name, "--retries", "0", "--limit", "1", "-j", "1"),
        command("size", "--model", "model", "--parameters", "2"),
        command("size", "--model", "model/config.json", "--json", "--gpu", "24", "--parameters", "2"),
        command("bench", "check", "docs"),
        command("infer", "olmocr_bench", "--data", "tests", "-e", "predictions:docs"),
    )
    dear = (
        command("engine", "test", "mine"),
        command("run", "docs", "-e", "reader", "--limit", "1", "-j", "1"),
        command("run", "docs", "-e", "pdf_text", "-j", "1", "--prompt-file", "prompt.txt"),
        command("review", "tests", "tests/tests.jsonl"),
    )
    return choose(dice, cheap, dear)


OWN = Target(name="folders", make=make_own, template=own_template, share=30)
SELECTIONS = Target(name="selections", make=make_selection, template=selection_template, share=8)
SETTINGS = Target(name="profiles", make=make_settings, template=settings_template, share=12)


def vectors_template(world: World) -> None:
    """A folder of vectors, a run with a journal of its own, queries and regions."""
    import numpy as np

    from tests.hostile import run_folders

    run_folders.template(world)
    folder = world.case / "vectors"
    folder.mkdir()
    rng = np.random.default_rng(3)
    for name, count in (("corpus_ocr_text", 7), ("queries", 2), ("corpus_regions", 2)):
        rows = rng.standard_normal((count, 8)).astype("<f4")
        np.save(folder / f"{name}.npy", rows / np.linalg.norm(rows, axis=1, keepdims=True))
    pages = [f"p{number}" for number in range(7)]
    region = {"page_id": "p1", "region_index": 0, "crop_path": "crops/a.png", "caption_text": "x", "label": "image"}
    files: dict[str, object] = {
        "page_ids.json": pages,
        "query_ids.json": ["q0", "q1"],
        "embedding_meta.json": {"model": "m", "dimension": 8, "counts": {"empty": 1}, "errors": []},
    }
    for name, found in files.items():
        (folder / name).write_text(json.dumps(found))
    (folder / "region_metadata.jsonl").write_text(f"{json.dumps(region)}\n" * 2)
    queries = [{"query_id": f"q{number}", "text": "alpha", "relevant": {"p0": 1}} for number in range(2)]
    (world.case / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    box = {"index": 0, "label": "image", "bbox_2d": [0, 0, 500, 500], "content": ""}
    (world.case / "regions.jsonl").write_text(json.dumps({"page_id": "p1", "regions": [box]}) + "\n")
    journal = world.case / RUNS[0] / "embeddings"
    journal.mkdir()
    settings = {
        "model": "m",
        "endpoint": "embeddings",
        "query_format": "plain",
        "instruction": "",
        "max_model_len": 8192,
    }
    lines = [{"settings": settings | {"image_rule": "none"}}, {"key": "a" * 64, "vector": "AACAPwAAAAA="}]
    (journal / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))


def make_vectors(dice: random.Random, world: World) -> Sequence[Command]:
    """Mutated matrices, their row names, queries, regions, and a journal that is continued."""
    run = RUNS[0]
    places = [world.case / "vectors"] * 4 + [world.case / run / "embeddings", world.case]
    place = dice.choice(places)
    mutations.mutate(dice, place, world.canary)
    if dice.random() < 0.3 and not isinstance(dice, mutations.Calm):
        _strange_matrix(dice, world.case / "vectors")
    server = ("--base-url", "http://127.0.0.1:9")
    every = (
        command("embed", "vectors", "--queries", "queries.jsonl"),
        command("embed", "vectors", "--queries", "queries.jsonl", "--json", "--mixed"),
        command("embed", "vectors", "--queries", "queries.jsonl", "--against", "vectors"),
        command("embed", run, *server, "--queries", "queries.jsonl"),
        command("embed", run, *server, "--regions", "regions.jsonl", "--page-ids", "sample"),
        command("embed", run, *server, "--fresh"),
    )
    return dice.sample(every, 3)


def _strange_matrix(dice: random.Random, folder: Path) -> None:
    """A header that promises what is not there, or asks Python to build objects."""
    header = dice.choice(
        (
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 1000), }",
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '<f4', 'fortran_order': True, 'shape': (7, 8), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 8), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 10000000000), }",
            "{'descr': [('a', '<f4')] * 9, 'fortran_order': False, 'shape': (7, 8), }",
            "__import__('os').system('touch ran')",
            "(" * 5000,
        )
    )
    text = header.encode().ljust(118 if len(header) < 118 else len(header)) + b"\n"
    data = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text
    file = folder / dice.choice(["corpus_ocr_text.npy", "queries.npy"])
    if folder.is_dir() and (file.is_file() or not os.path.lexists(file)) and not file.is_symlink():
        file.write_bytes(data + b"\0" * 224)


VECTORS = Target(name="vectors", make=make_vectors, template=vectors_template, share=8)
