"""Install Loupe as users do, and try its commands there: see script/test-installs."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.synthetic import MAKERS, write_prepared  # noqa: E402

from loupe.data.extras import EXTRAS  # noqa: E402

UV = (sys.executable, "-m", "uv")
#: By name: the extras, and further words for the installer.
INSTALLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "core": ((), ()),
    **{name: ((name,), ()) for name in EXTRAS if name != "ray"},
    "lowest": (tuple(name for name in EXTRAS if name != "ray"), ("--resolution", "lowest-direct")),
}


def fill(folder: Path, names: Iterable[str] = tuple(MAKERS)) -> None:
    """Data and answers of benchmarks, the README, and a folder of documents."""
    (folder / "answers").mkdir(parents=True)
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "README.md", folder)
    for name in names:
        answers = write_prepared(name, folder / "data" / name, 4)
        if name == "ocrbench_v2":
            _add_passage(folder / "data" / name / "metadata.jsonl")
        lines = [json.dumps({"id": key, "text": text}) for key, text in answers.items()]
        (folder / "answers" / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")


def _add_passage(file: Path) -> None:
    """A question that is scored with METEOR, which the generated ones are not."""
    row = json.loads(file.read_text("utf-8").splitlines()[-1])
    row["idx"], row["sample_id"] = row["idx"] + 1, "passage"
    row["metadata"]["type"] = "full-page OCR en"
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")


def find_python(name: str) -> str | None:
    """Return the Python for an install: this one, but 3.12 or 3.11 for the lowest versions; None if there is none."""
    if name != "lowest" or sys.version_info < (3, 13):
        return sys.executable
    for version in ("3.12", "3.11"):
        search = [*UV, "python", "find", "--no-python-downloads", "--system", version]
        found = subprocess.run(search, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.strip()
    return None


def install(place: Path, base: str, extras: tuple[str, ...], options: tuple[str, ...]) -> Path:
    """Make an environment of the Python `base` with Loupe and these extras, by uv and its cache; return its Python."""
    wanted = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    subprocess.run([*UV, "venv", "--quiet", "--python", base, place], check=True)
    python = place / "bin/python"
    subprocess.run([*UV, "pip", "install", "--quiet", "--python", python, *options, wanted], check=True)
    return python


def main() -> int:
    """Try the installs that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="INSTALL", help=f"one of: {', '.join(INSTALLS)}; default: all")
    asked = parser.parse_args().names
    results: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="loupe-installs-") as temporary:
        for name in asked or INSTALLS:
            extras, options = INSTALLS[name]
            base = find_python(name)
            if base is None:
                results[name] = "not tried (needs Python 3.11 or 3.12)"
                continue
            folder, place = Path(temporary) / f"{name}-work", Path(temporary) / f"{name}-env"
            fill(folder)
            python = install(place, base, extras, options)
            words: list[str | Path] = [python, ROOT / "script/try_commands.py", folder, ",".join(extras)]
            home = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
            done = subprocess.run(words, cwd=folder, env=home, capture_output=True, text=True, check=False)
            results[name] = "FAILED" if done.returncode else "ok"
            print(f"test-installs: {name}: {results[name]}", flush=True)
            if done.returncode:
                print(done.stdout[-8000:], done.stderr[-2000:], sep="\n", flush=True)
            shutil.rmtree(place)
    print("", *(f"{name}: {result}" for name, result in results.items()), sep="\n")
    return "FAILED" in results.values() or (bool(asked) and set(results.values()) != {"ok"})


if __name__ == "__main__":
    sys.exit(main())
