"""Run the entry of a Python server until it reads its words; then let its argparse parser read command lines instead.

`python parse_only.py MODULE:FUNCTION|MODULE`, with the Python of the server's environment and a JSON list of command
lines on standard input. The last line is JSON: the options of the parser and of its subcommand `serve`, and what it
says against each command line ("": nothing). Packages of an accelerator that SGLang imports and that are not here are
stood in for.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import runpy
import sys
import warnings
from typing import Any, NoReturn
from unittest.mock import MagicMock

#: What a machine without a GPU need not have.
ABSENT = ("sgl_kernel", "triton", "flashinfer", "deep_gemm", "cuda", "tvm_ffi", "nvidia", "quack", "cutlass")


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds whatever is below the names of ABSENT, or could not be found at all, and gives an object that takes all."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """A module of ours; it stands behind the usual finders, so real ones come first."""
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in ABSENT else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        """Anything, and everything in it."""
        return MagicMock(name=spec.name, __path__=[], __spec__=spec, __name__=spec.name)

    def exec_module(self, module: Any) -> None:
        """Nothing to do."""


class RefusedError(Exception):
    """What a parser says against a command line."""


def refuse(_: argparse.ArgumentParser, message: str) -> NoReturn:
    """Instead of usage and the end of the process."""
    raise RefusedError(message)


def options(parser: argparse.ArgumentParser) -> set[str]:
    """All flags of a parser and of its subcommand."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and "serve" in action.choices:
            found |= options(action.choices["serve"])
    return found


def said(parser: argparse.ArgumentParser, words: list[str]) -> str:
    """What the parser says against these words, "" if nothing."""
    sys.argv[1:] = words
    try:
        parser.parse_args(words)
    except RefusedError as error:
        return str(error)
    except SystemExit as error:
        return f"it ends: {error}"
    return ""


def main(entry: str, lines: list[list[str]]) -> None:
    """Start the program, take its parser, and end the process."""
    read = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser, args: Any = None, namespace: Any = None) -> NoReturn:
        argparse.ArgumentParser.parse_args = read  # type: ignore[method-assign]
        errors = [said(self, words) for words in lines]
        print(json.dumps({"options": sorted(options(self)), "errors": errors}), flush=True)
        os._exit(0)

    argparse.ArgumentParser.parse_args = parse_args  # type: ignore[method-assign, assignment]
    argparse.ArgumentParser.error = refuse  # type: ignore[method-assign, assignment]
    # No abbreviations, which a later version may find ambiguous.
    argparse.ArgumentParser._get_option_tuples = lambda self, option: []  # type: ignore[method-assign]
    sys.argv = [entry, *lines[0]]
    module, _, function = entry.partition(":")
    if function:
        getattr(importlib.import_module(module), function)()
    else:
        sys.meta_path.append(StandIns())
        runpy.run_module(module, run_name="__main__")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], json.load(sys.stdin))
