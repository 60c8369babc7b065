"""Links at every default place, and packs of runs whose members no `loupe pack` has written."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shutil
import tarfile
from collections.abc import Sequence

from tests.hostile import mutations
from tests.hostile.cases import Command, Target, World, command
from tests.hostile.run_folders import write_answers, write_docs

#: Every place that a command writes to, or looks at, if the user names none.
PLACES = (
    *("runs", "runs/reader", "runs/reader/docs", "logs", "report.html", "samples.csv", "samples.parquet"),
    *("predictions", "reports", "failed_tests.jsonl", "submission.json", "reader_docs.tar.gz", "docs.tar"),
    *("docs/.loupe", "docs/.loupe/drafts", "docs/.loupe/boxes", "kept/reader/docs/predictions"),
    *("kept/reader/docs/official", "kept/reader/docs/run.lock", "kept/reader/docs/embeddings", "mlruns"),
)
NAMES = (
    *("documents/../x", "/x", "documents/.loupe/x", "plugin/x.vim", "documents/samples.jsonl", "scores.jsonl", "x"),
    *("run.json", "documents", "documents/a/b/c", "documents/" + "x" * 300, "documents/a\nerror: b", "server.json"),
)


def template(world: World) -> None:
    """A benchmark, a run of it elsewhere, answers and a pack."""
    from loupe.cli import main

    write_docs(world.case / "docs")
    write_answers(world.case / "answers")
    os.chdir(world.case)
    assert main(["run", "docs", "-e", world.reader, "--name", "reader", "--runs", "kept"]) == 0
    assert main(["pack", "kept/reader/docs", "--with-truth", "-o", "pack.tar.gz"]) == 0


def make(dice: random.Random, world: World) -> Sequence[Command]:
    """Some default places are links to the canary, and the pack is a stranger's."""
    calm = isinstance(dice, mutations.Calm)
    for place in () if calm else dice.sample(PLACES, dice.choice([1, 1, 2, 4])):
        path = world.case / place
        if any(above.is_symlink() for above in path.parents):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        target = dice.choice([world.canary, world.canary / "folder", world.canary / ".bashrc", world.canary / "new"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(dice.choice([target, os.path.relpath(target, path.parent)]))
    if not calm and dice.random() < 0.6:
        (world.case / "pack.tar.gz").write_bytes(_strange_pack(dice, world))
    run = "kept/reader/docs"
    every = (
        command("unpack", "pack.tar.gz"),
        command("unpack", "pack.tar.gz", "new"),
        command("runs"),
        command("compare"),
        command("export", run),
        command("export", "kept", "--to", "inspect"),
        command("export", "kept", "--to", "csv"),
        command("export", "kept", "--to", "evaluation"),
        command("export", run, "--to", "hf-eval-results"),
        command("pack", run),
        command("data", "pack", "docs"),
        command("reproduce", "rapidocr/omnidocbench"),
        command("embed", run, "--base-url", "http://127.0.0.1:9"),
        command("infer", "docs", "-e", world.reader),
        command("draft", "docs", "-e", "predictions:answers"),
    )
    dear = (
        command("score", "pack.tar.gz", "-j", "1"),
        command("score", "docs", "answers", "-j", "1"),
        command("run", "docs", "-e", world.reader, "-j", "1"),
        command("report", run),
        command("view", run),
    )
    return [*dice.sample(every, 3), *([dice.choice(dear)] if dice.random() < 0.2 else [])]


def _strange_pack(dice: random.Random, world: World) -> bytes:
    """The pack with members renamed, added, bent or made links, and sometimes with another name of its benchmark."""
    buffer = io.BytesIO()
    with tarfile.open(world.case / "pack.tar.gz") as old, tarfile.open(fileobj=buffer, mode="w") as new:
        for member in old:
            stream = old.extractfile(member)
            data = stream.read() if stream else b""
            chance = dice.random()
            if member.name == "run.json" and dice.random() < 0.5:
                name = dice.choice(["docs", "sample_pages", "../docs", "/x", "documents/x", ".", "\x1b[2J"])
                data = json.dumps(json.loads(data) | {"benchmark": name, "engine": mutations.text(dice)}).encode()
            elif chance < 0.1:
                data = mutations.bend_bytes(dice, data)
            elif chance < 0.2:
                member.name = dice.choice(NAMES)
            elif chance < 0.3:
                member.type, member.linkname, data = dice.choice([tarfile.SYMTYPE, tarfile.LNKTYPE]), "run.json", b""
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
        if dice.random() < 0.5:
            extra = tarfile.TarInfo(dice.choice(NAMES))
            extra.size = 4
            new.addfile(extra, io.BytesIO(b"evil"))
    return gzip.compress(buffer.getvalue())


PLACES_AND_PACKS = Target(name="places", make=make, template=template, share=12)
