#!/usr/bin/env python3
"""Check every flag that Loupe passes, names or documents for model servers against the real programs' own parsers.

`python script/check_server_arguments.py FOLDER`: FOLDER has the environments of `script/test-servers`, which runs this.
Checked: the command line of each kind (with name and for vectors), of each profile with `[servers.KIND]`, those in
`needs`, and the flags of `templates.toml` outside a command line. A Python server is run up to the moment at which it
reads its words (parse_only.py); llama-server and `loupe serve` read them before `--version` or `--help` ends them.
Exit code 1: a flag was refused. What cannot be checked here is printed as unchecked.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loupe.engines.registry import load_profile
from loupe.servers.templates import Template, templates
from loupe.servers.wanted import Wanted, wanted_server

ROOT = Path(__file__).resolve().parents[1]
PROFILES = ROOT / "src/loupe/engines/profiles"
PROBE = ROOT / "script/parse_only.py"
#: Kind → environment, how its entry is named for parse_only.py, and the package whose version is told.
PARSERS = {
    "vllm": ("vllm", "vllm.entrypoints.cli.main:main", "vllm"),
    "sglang": ("sglang", "sglang.launch_server", "sglang"),
    "mlx_vlm": ("mlx_vlm", "mlx_vlm.server:main", "mlx-vlm"),
    "mlx_lm": ("mlx_vlm", "mlx_lm.server:main", "mlx-lm"),
}
#: Flags of templates.toml that only older versions have: whoever runs one may pass them, and they change no answer.
OLDER = {"vllm": {"swap-space", "disable-log-requests"}}
#: Start commands in texts: up to the end, or to what stands behind them in brackets.
COMMAND = re.compile(
    r"(?:^|[\s:])"
    r"(?P<words>(?:vllm serve|llama-server|python3? -m sglang\.launch_server|mlx_vlm\.server|mlx_lm\.server)\s.+)"
)
KINDS = {"vllm": "vllm", "llama-server": "llama-server", "python": "sglang", "python3": "sglang"}
KINDS |= {"mlx_vlm.server": "mlx_vlm", "mlx_lm.server": "mlx_lm"}


@dataclass(frozen=True)
class Line:
    """A command line: where it stands, which kind of server it is for, and the words behind the program."""

    where: str
    kind: str
    words: list[str]


def main(folder: Path) -> int:
    """Check everything; 1 if anything is refused."""
    refused: list[str] = []
    every = [*template_lines(), *profile_lines(), *needed_lines()]
    for kind, template in templates().items():
        lines = [line for line in every if line.kind == kind]
        if reason := missing(kind, folder):
            print(f"unchecked: {kind}: {reason} ({len(lines)} command lines)")
            continue
        known, errors = parse(kind, [line.words for line in lines], folder)
        refused += [
            f"{line.where}: {error}\n    {shlex.join(line.words)}"
            for line, error in zip(lines, errors, strict=True)
            if error
        ]
        unknown = [name for name in spoken_of(template) if bare(name) not in known]
        older = OLDER.get(kind, set())
        refused += [f"templates.toml [{kind}]: no flag {name}" for name in unknown if name not in older]
        for name in older & set(unknown):
            print(f"unchecked: {kind}: --{name}, of older versions")
        print(f"{kind} {version(kind, folder)}: {len(lines)} command lines read, {len(known)} flags known", flush=True)
    print("\n".join(f"REFUSED: {each}" for each in refused) or "no flag is refused")
    return int(bool(refused))


def template_lines() -> Iterator[Line]:
    """What Loupe starts without a profile: a model under another name, and for vectors where there are any."""
    for kind, template in templates().items():
        for embedding in (False, True) if template.embedding is not None else (False,):
            wanted = wanted_of(
                "openai", kind, model="a/name", serve=f"{kind}:a/b-GGUF", embedding=embedding, gpus="0,1"
            )
            yield Line(f"templates.toml [{kind}]{' embedding' * embedding}", kind, words_of(wanted))


def profile_lines() -> Iterator[Line]:
    """What Loupe starts for a profile that has arguments for a kind of server."""
    for file, content in profiles():
        for kind in content.get("servers", {}):
            yield Line(f"{file.name} [servers.{kind}]", kind, words_of(wanted_of(str(file), kind, serve=kind)))


def needed_lines() -> Iterator[Line]:
    """What a profile tells its user to start."""
    for file, content in profiles():
        for text in content.get("needs", []):
            for words in commands(text):
                yield Line(
                    f"{file.name} needs", KINDS[words[0]], words[3:] if words[0].startswith("python") else words[1:]
                )


def commands(text: str) -> Iterator[list[str]]:
    """The start command in a sentence, in words; it ends at a bracket, and behind a comma or semicolon.

    >>> list(commands("vLLM 0.18: vllm serve a/b --max-model-len 9 (weights @ 4)"))
    [['vllm', 'serve', 'a/b', '--max-model-len', '9']]
    """
    for found in COMMAND.finditer(text):
        words: list[str] = []
        for word in shlex.split(found["words"]):
            if word.startswith("("):
                break
            words.append(word.rstrip(",;"))
            if word[-1:] in {",", ";"}:
                break
        yield words


def profiles() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every profile of the package."""
    for file in sorted(PROFILES.rglob("*.toml")):
        yield file, tomllib.loads(file.read_text(encoding="utf-8"))


def wanted_of(engine: str, kind: str, *, embedding: bool = False, **keys: Any) -> Wanted:
    """The server that Loupe would start."""
    wanted = wanted_server(load_profile(engine, keys)[1], embedding=embedding)
    assert wanted is not None and wanted.kind == kind
    return wanted


def words_of(wanted: Wanted) -> list[str]:
    """The words behind the program (and behind `python -m MODULE`, and `serve` of Loupe)."""
    words = wanted.shown(7777)
    return words[{"sglang": 3, "loupe": 4}.get(wanted.kind, 1) :]


def spoken_of(template: Template) -> list[str]:
    """Flags that a template knows of and that are in no command line: neutral ones, files, GPUs, advice."""
    advice = re.findall(r"--server-arg=(-[^\s=,]+)", template.memory)
    fields = [*template.neutral, *template.files, *filter(None, [template.gpus]), *advice]
    return [name for name in fields if name not in template.values]


def bare(flag: str) -> str:
    """As arguments.Argument.name has it."""
    return flag.lstrip("-").replace("_", "-").removeprefix("no-")


def missing(kind: str, folder: Path) -> str:
    """Why a kind cannot be checked, "" if it can."""
    if kind == "loupe":
        return ""
    if kind == "ollama":
        return "no package of a registry has the program; it takes no arguments of Loupe's, only variables"
    name = PARSERS[kind][0] if kind in PARSERS else kind
    return "" if (folder / name / "ready").exists() else f"no environment {name} (script/test-servers)"


def parse(kind: str, lines: list[list[str]], folder: Path) -> tuple[set[str], list[str]]:
    """Every flag that a program knows, without dashes, and what it says against each command line ("": nothing)."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    if kind not in PARSERS:
        program = [sys.executable, "-m", "loupe", "serve"] if kind == "loupe" else [str(folder / kind / "bin" / kind)]
        last = "--help" if kind == "loupe" else "--version"
        done = [call([*program, *words, last], env) for words in lines]
        flags = re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", call([*program, "--help"], env).stdout)
        errors = ["" if each.returncode == 0 else (each.stderr.strip() or "it ends").splitlines()[-1] for each in done]
        return {bare(flag) for flag in flags}, errors
    environment, entry, _ = PARSERS[kind]
    asked = call([str(folder / environment / "bin/python"), str(PROBE), entry], env, json.dumps(lines))
    answer = next((line for line in asked.stdout.splitlines() if line.startswith('{"options"')), None)
    if answer is None:
        raise SystemExit(f"{kind} never came to its command line:\n{asked.stderr[-2000:]}")
    found = json.loads(answer)
    return {bare(option) for option in found["options"]}, found["errors"]


def call(words: list[str], env: dict[str, str], given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(words, input=given, capture_output=True, text=True, env=env, timeout=900, check=False)


def version(kind: str, folder: Path) -> str:
    """The version of the package or program that was asked."""
    if kind not in PARSERS:
        if kind == "loupe":
            return "of this checkout"
        shown = call([str(folder / kind / "bin" / kind), "--version"], dict(os.environ))
        return (shown.stdout + shown.stderr).partition("\n")[0].removeprefix("version: ")
    environment, _, package = PARSERS[kind]
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return call([str(folder / environment / "bin/python"), "-c", code], dict(os.environ)).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
