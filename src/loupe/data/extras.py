"""Packages that come only with an extra: missing ones are named once, before a run starts, and not sample by sample."""

from __future__ import annotations

import shlex
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

import loupe
from loupe.errors import MissingToolError
from loupe.typed import json_decoder

NAME = "loupe-ocr"


class Extra(NamedTuple):
    """The purpose of an extra (docs/install.md says the same), and the modules that it brings."""

    purpose: str
    modules: tuple[str, ...]


#: The extras of which `all` consists, and `ray`. `loupe doctor` shows what they are for.
EXTRAS: Final = {
    "rapidocr": Extra("the engine `rapidocr`", ("rapidocr", "onnxruntime")),
    "data": Extra("`loupe data get`, parquet", ("huggingface_hub", "pyarrow")),
    "fox": Extra("the words of `fox` and the passages of `ocrbench_v2`", ("nltk", "jieba")),
    "math": Extra("equations of `olmocr_bench`, `omni_parse_bench` and facts about your own pages", ("playwright",)),
    "anchors": Extra("prompts with `{anchor_text}`", ("ftfy", "pypdf")),
    "synth": Extra("pages generated with exact truth", ("typst",)),
    "web": Extra("`loupe view`, `loupe review`", ("starlette", "uvicorn")),
    "ray": Extra("many machines: `--on ray`", ("ray",)),
}


def need(*modules: str, extra: str, purpose: str) -> None:
    """Raise MissingToolError, naming the extra, unless all modules are installed.

    >>> need("json", extra="tables", purpose="TEDS")
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingToolError(
            f"{purpose} needs {' and '.join(missing)}, which {verb} not installed",
            hint=install_hint(extra),
        )


def install_hint(extra: str, *options: str) -> str:
    """The hint of an error for want of an extra ("": of Loupe itself)."""
    return f"install it: {install_command(extra, *options)}"


def install_of(module: str) -> str:
    """The command that brings a module: the extra that it comes with, else the core again."""
    package = module.partition(".")[0]
    extra = next((name for name, one in EXTRAS.items() if package in one.modules), "")
    return install_command(extra) if extra else install_command("", "--force-reinstall")


def install_command(extra: str, *options: str) -> str:
    """The command that adds an extra ("": none) to the installation that is running, from where that came (PEP 610).

    An index may not have Loupe, or another release of it: what came from a checkout, a wheel or a repository is
    completed from there.
    """
    return pip_install(*options, *_requirement(f"[{extra}]" if extra else ""))


def pip_install(*words: str) -> str:
    """Return the command that installs packages into the environment that is running."""
    if find_spec("pip"):
        return shlex.join([sys.executable, "-m", "pip", "install", *words])
    # uv made the environment, may itself be in it, and knows no other one than it is told.
    uv = [sys.executable, "-m", "uv"] if find_spec("uv") else ["uv"]
    return shlex.join([*uv, "pip", "install", "--python", sys.executable, *words])


def _requirement(extra: str) -> list[str]:
    try:
        written = distribution(NAME).read_text("direct_url.json")
        origin = json_decoder(dict).decode(written) if written else {}
    except PackageNotFoundError:
        # The code is run from where it lies, without having been installed.
        return ["-e", f"{Path(loupe.__file__).parents[2]}{extra}"]
    except msgspec.DecodeError:
        origin = {}
    url = str(origin.get("url", ""))
    if not url:
        return [f"{NAME}{extra}"]
    if (folder := origin.get("dir_info")) is not None:
        return [*(["-e"] if folder.get("editable") else []), f"{url2pathname(urlsplit(url).path)}{extra}"]
    if repository := origin.get("vcs_info"):
        url = f"{repository.get('vcs', 'git')}+{url}@{repository.get('commit_id', 'HEAD')}"
    return [f"{NAME}{extra} @ {url}"]


@cache
def installed(*packages: str) -> dict[str, str]:
    """Releases of packages that scores depend on, "" where one is missing; with lxml the parser inside it.

    >>> sorted(installed("lxml"))
    ['libxml2', 'lxml']
    """
    found = {package: _release(package) for package in packages}
    if found.get("lxml"):
        from lxml import etree

        found["libxml2"] = ".".join(map(str, etree.LIBXML_VERSION))
    return found


def _release(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
