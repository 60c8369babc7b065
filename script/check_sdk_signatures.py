#!/usr/bin/env python3
"""Compare what Loupe's stand-ins for vendors' packages take with the packages themselves, which are only read.

Run by hand where a registry can be reached: `python script/check_sdk_signatures.py [--write]`. It fetches each package
without its dependencies (some 40 MB) into a temporary folder with uv, and reads the signatures from the source; nothing
of a package is run. `--write` records them in tests/stand_ins/signatures.json, which tests hold the stand-ins to.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests/stand_ins/signatures.json"
#: Package and version → where the calls are that Loupe makes: file, then function or Class.method; Class alone: fields.
CALLS = {
    "glmocr==0.1.5": [
        ("glmocr/api.py", "GlmOcr.__init__"),
        ("glmocr/api.py", "GlmOcr.parse"),
        ("glmocr/config.py", "GlmOcrConfig.default_path"),
        ("glmocr/parser_result/pipeline_result.py", "PipelineResult.__init__"),
    ],
    "paddleocr==3.7.0": [
        ("paddleocr/_pipelines/paddleocr_vl.py", "PaddleOCRVL.__init__"),
        ("paddleocr/_pipelines/paddleocr_vl.py", "PaddleOCRVL.predict"),
    ],
    "mineru==3.4.5": [("mineru/cli/common.py", "do_parse"), ("mineru/cli/common.py", "read_fn")],
    "mineru==4.0.12": [
        ("mineru/parser/mineru_parser.py", "MinerUParser.__init__"),
        ("mineru/parser/mineru_parser.py", "MinerUParser.parse"),
        ("mineru/parser/base.py", "ParseResult.save"),
        ("mineru/config.py", "VlmConfig"),
    ],
}


def main() -> int:
    """Compare or record; 1 if anything is other than recorded."""
    found = {package: signatures(package, calls) for package, calls in CALLS.items()}
    text = json.dumps(found, indent=1) + "\n"
    if "--write" in sys.argv:
        RECORD.write_text(text, encoding="utf-8")
        print(f"written: {RECORD.relative_to(ROOT)}")
        return 0
    known = json.loads(RECORD.read_text(encoding="utf-8"))
    other = [name for name in found if known.get(name) != found[name]]
    print("\n".join(f"{name}: recorded {known.get(name)}, found {found[name]}" for name in other) or "all as recorded")
    return int(bool(other))


def signatures(package: str, calls: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Parameter names of each call, fetched and read."""
    with tempfile.TemporaryDirectory() as folder:
        fetch = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--target", folder, package]
        subprocess.run(fetch, check=True, timeout=300)
        return {name: parameters(Path(folder) / file, name) for file, name in calls}


def parameters(file: Path, name: str) -> list[str]:
    """Parameter names in order, `*name` and `**name` at the end; of a class, its annotated fields."""
    nodes: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body
    *outer, last = name.split(".")
    for each in outer:
        nodes = next(node.body for node in nodes if isinstance(node, ast.ClassDef) and node.name == each)
    # The last one: overloads come before what they describe.
    found = [node for node in nodes if getattr(node, "name", "") == last][-1]
    if isinstance(found, ast.ClassDef):
        targets = [field.target for field in found.body if isinstance(field, ast.AnnAssign)]
        return [target.id for target in targets if isinstance(target, ast.Name)]
    assert isinstance(found, ast.FunctionDef)
    given = found.args
    rest = [f"*{given.vararg.arg}"] if given.vararg else []
    rest += [f"**{given.kwarg.arg}"] if given.kwarg else []
    named = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [each for each in named if each not in ("self", "cls")] + rest


if __name__ == "__main__":
    sys.exit(main())
