"""Run Loupe's commands where extras are missing: each works, or names the line that installs what it needs.

`PYTHON try_commands.py FOLDER EXTRA,EXTRA [--hide]` runs in an environment with exactly these extras, in the FOLDER
that script/test_installs.py has filled; with `--hide` the packages of all other extras are hidden from this Python
instead. Prints a line for each command that does something else, and then exits with 1.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

#: Modules that this Python must not find.
HIDDEN: set[str] = set()
CRASHED, MISSING = 70, 4


class Try(NamedTuple):
    """A command; the extra that it needs; the codes with which it may end if that is there (none: it is not run)."""

    words: str
    needs: str = ""
    codes: tuple[int, ...] = (0,)
    says: str = ""


def hide() -> None:
    """Let imports and searches of HIDDEN fail as if the modules were not installed."""
    search = importlib.util.find_spec

    class Finder:
        def find_spec(self, name: str, *_: Any) -> None:
            if name.partition(".")[0] in HIDDEN:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
    importlib.util.find_spec = lambda name, package=None: (  # type: ignore[assignment]
        None if name.partition(".")[0] in HIDDEN else search(name, package)
    )


def commands(folder: Path) -> list[Try]:
    """What is tried, in this order: later ones look at the runs of earlier ones."""
    names = sorted(path.name for path in (folder / "data").iterdir())
    scores = {name: f"score {name} answers/{name}.jsonl --data data/{name} -j 1" for name in names}
    special = {
        "fox": [Try(scores["fox"] + " -o words=none"), Try(scores["fox"] + " -o words=stems --name w", "fox")],
        "ocrbench_v2": [
            Try(scores["ocrbench_v2"] + " -o passages=skip --name p"),
            Try(scores["ocrbench_v2"], "fox", ()),
        ],
    }
    # By the address that the README uses.
    scores["omnidocbench"] = (
        scores["omnidocbench"].replace(" ", " omnidocbench@1.5 ", 1).replace(" omnidocbench ", " ", 1)
    )
    return [
        *map(Try, ("bench list", "data list", "reproduce", "engine list", "doctor", "--help")),
        *(one for name, words in scores.items() for one in special.get(name, [Try(words)])),
        Try("score dp_bench answers/dp_bench.jsonl --data data/dp_bench -j 1 --name other"),
        *map(Try, ("runs", "compare runs/dp_bench/dp_bench runs/other/dp_bench", "report runs -o report.html")),
        Try("lint runs/omnidocbench/omnidocbench"),
        Try("export runs/dp_bench/dp_bench --to csv"),
        Try("export runs/dp_bench/dp_bench --to parquet", "data"),
        Try("verify pubtabnet"),
        Try("verify fox ocrbench_v2", "fox", (0, MISSING)),
        Try("run sample_pages -e pdf_text --limit 2", codes=(0, 3)),
        Try("run sample_pages -e rapidocr --limit 1", "rapidocr"),
        *([] if shutil.which("tesseract") else [Try("demo", "rapidocr", ())]),
        Try("run omnidocbench -e pdf_text", codes=(2,), says="loupe data get omnidocbench"),
        Try("run all --limit 5 -e pdf_text", codes=(2,), says="loupe data get "),
        Try("data get pubtabnet", "data", ()),
        Try("synth made --pages 2 --tracks tables", "synth"),
        Try("run synth -e pdf_text", "synth", ()),
        Try("view runs", "web", ()),
        Try("review docs", "web", ()),
        Try("run sample_pages -e pdf_text --on ray", "ray", ()),
    ]


def tried(words: list[str]) -> tuple[int, str]:
    """The exit code of a command in this process, and what it said."""
    from loupe.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(words)
    return code, said.getvalue()


def fault_of(one: Try, extras: set[str]) -> str:
    """What is wrong with the outcome of a command; "": nothing."""
    there = not one.needs or one.needs in extras
    if there and not one.codes:
        return ""
    code, said = tried(shlex.split(one.words))
    if code == CRASHED or "ModuleNotFoundError" in said or "Traceback" in said:
        return f"{one.words}: exit {code}\n{said[-1500:]}"
    hint = f"[{one.needs}]"
    if there and (code not in one.codes or one.says not in said):
        return f"{one.words}: exit {code}, not {one.codes} with {one.says!r}\n{said[-800:]}"
    if not there and (code != MISSING or hint not in said):
        return f"{one.words}: exit {code}, not {MISSING} with the command that installs {hint}\n{said[-800:]}"
    if "loupe data get" in said and "data" not in extras and "[data]" not in said and "hint:" in said:
        return f"{one.words}: names `loupe data get`, which needs [data], and not what installs it\n{said[-800:]}"
    return ""


def readme_faults(page: Path, extras: set[str]) -> list[str]:
    """The commands of the README that end as a bug would; the servers and folders that it names are not here."""
    lines = [line.partition("#")[0].strip() for line in page.read_text("utf-8").splitlines()]
    found = []
    for line in lines:
        # `view` serves until it is stopped; `demo` reads for minutes, and so does `synth` where it is installed.
        long = ("view", "demo", *(["synth"] if "synth" in extras else []))
        if not line.startswith("loupe ") or not set(line.split()[1:3]).isdisjoint(long):
            continue
        code, said = tried(shlex.split(line)[1:])
        if code == CRASHED or "ModuleNotFoundError" in said or "Traceback" in said:
            found.append(f"README: {line}: exit {code}\n{said[-1500:]}")
    return found


def main() -> int:
    """Try everything."""
    folder, extras = Path(sys.argv[1]), set(filter(None, sys.argv[2].split(",")))
    os.chdir(folder)
    if "--hide" in sys.argv:
        hide()
    from loupe.data.extras import EXTRAS

    if "--hide" in sys.argv:
        HIDDEN.update(module for name, one in EXTRAS.items() if name not in extras for module in one.modules)
    faults = [fault for one in commands(folder) if (fault := fault_of(one, extras))]
    faults += readme_faults(folder / "README.md", extras)
    print("\n".join(faults) or "every command works, or says what to install")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
