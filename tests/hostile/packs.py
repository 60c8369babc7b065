"""Packs of runs and of data that lie: forged counts and results, impossible intervals, seals of nobody, false names.

A forged value is always the same number, so that no command may print it without saying that it was not scored here.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.hostile import mutations, run_folders
from tests.hostile.cases import Command, Target, World, choose, command

#: The forged value, and how it looks wherever it is printed.
LIE, PRINTED = 0.98765, r"98\.7[67]|0\.98765"
PACK, DATA = "pack.tar.gz", "ocrbench.tar"
RUN = "runs/reader/docs"
Rows = list[dict[str, Any]]
Forge = Callable[[random.Random, Rows, dict[str, Any]], None]


def template(world: World) -> None:
    """A pack of a run with its documents, and one of a folder that is called like a published data set."""
    from loupe.cli import main

    run_folders.template(world)
    assert main(["pack", RUN, "--with-truth", "-o", PACK]) == 0
    assert main(["data", "pack", "docs", "-o", DATA]) == 0


def _counts(dice: random.Random, rows: Rows, _: dict[str, Any]) -> None:
    for score in (score for row in rows for score in row["scores"]):
        if len(score["counts"]) == 2:
            score["counts"] = [LIE * 8, 8.0]
        if dice.random() < 0.02:
            score["counts"] = dice.choice([[], [1e308, 1e-308], [-1.0, 1.0], [1.0], [0.0, 0.0]])


def _values(_: random.Random, __: Rows, result: dict[str, Any]) -> None:
    for one in _estimates(result):
        one |= {"value": LIE, "low": LIE, "high": LIE}


def _intervals(dice: random.Random, _: Rows, result: dict[str, Any]) -> None:
    for one in _estimates(result):
        one |= {"value": LIE} if dice.random() < 0.5 else {}
        one |= dice.choice([{"low": 2.0, "high": 3.0}, {"low": -1.0, "high": 0.1}, {"low": None}, {"low": 1e308}])


def _digests(dice: random.Random, rows: Rows, _: dict[str, Any]) -> None:
    for row in rows:
        row |= {"digest": dice.choice(["", "0" * 64]), "seal": dice.choice(["", "f" * 64, "\u00e9", "x" * 10**5])}


def _claims(dice: random.Random, _: Rows, result: dict[str, Any]) -> None:
    claims = {"scored_here": True, "total": 10**9, "published_total": 1, "outcomes": {}, "failures": [], "warnings": []}
    result |= dict(dice.sample(sorted(claims.items(), key=str), 3))


def _estimates(result: dict[str, Any]) -> list[dict[str, Any]]:
    sliced = [one for values in result["slices"].values() for named in values.values() for one in named.values()]
    return [*result["measures"].values(), *sliced]


FORGERIES: tuple[Forge, ...] = (_counts, _values, _intervals, _digests, _claims)


def make(dice: random.Random, world: World) -> Sequence[Command]:
    """A forged pack, a data pack under a false name, and what a person does with both."""
    if not isinstance(dice, mutations.Calm):
        _forge_pack(dice, world.case / PACK)
        _forge_data(dice, world.case / DATA)
    run = "there/reader/docs"
    cheap = (
        command("runs", "--runs", "there"),
        command("runs", "--runs", "there", "--json"),
        command("compare", run, RUN),
        command("compare", run, RUN, "--json"),
        command("compare", "there"),
        command("export", run, "--to", "evaluation"),
        command("export", run, "--to", "csv"),
        command("data", "list"),
        command("data", "verify"),
    )
    dear = (
        command("score", run, "-j", "1", "--plain"),
        command("report", run, "-o", "out.html"),
        command("view", "there"),
    )
    return [command("unpack", PACK, "there"), command("data", "unpack", DATA), *choose(dice, cheap, dear, often=0.3)]


def _forge_pack(dice: random.Random, pack: Path) -> None:
    with tarfile.open(pack) as tar:
        members = {member.name: stream.read() for member in tar if (stream := tar.extractfile(member))}
    rows = [json.loads(line) for line in members["scores.jsonl"].splitlines()]
    result = json.loads(members["result.json"])
    for forge in dice.sample(FORGERIES, dice.randint(1, 3)):
        forge(dice, rows, result)
    rows = rows if dice.random() < 0.8 else rows[: dice.randint(0, len(rows))]
    members["scores.jsonl"] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    members["result.json"] = json.dumps(result).encode()
    if dice.random() < 0.2:
        del members[dice.choice(["scores.jsonl", "result.json"])]
    if dice.random() < 0.1:  # no pack of ours has it
        members["scored.seal"] = f"{'0' * 64} {'0' * 64}".encode()
    pack.write_bytes(gzip.compress(_tar(members), 1))


def _forge_data(dice: random.Random, pack: Path) -> None:
    with tarfile.open(pack) as tar:
        members = {member.name: stream.read() for member in tar if (stream := tar.extractfile(member))}
    manifest = json.loads(members["loupe-data.json"])
    manifest |= {"id": dice.choice(["ocrbench", "ocrbench", "omnidocbench", "../x", ""]), "repo": "echo840/OCRBench"}
    manifest |= {"revision": "a" * 40, "requested": "main"}
    members["loupe-data.json"] = json.dumps(manifest).encode()
    pack.write_bytes(_tar(members))


def _tar(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


TARGET = Target(name="packs", make=make, template=template, share=16, lie=PRINTED)
