"""Functions that tests use as engines in worker processes: good ones, and every way to misbehave."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from loupe.data.rasters import open_image
from loupe.errors import EngineError, MissingToolError, RejectedError
from loupe.types import Output, PdfPage, Request
from loupe.workers.child import Loaded


def load(**settings: Any) -> Loaded:
    """An engine whose prompts say what to do; `mark` is a file that gets a line per load."""
    if settings.get("fail") == "missing":
        raise MissingToolError("the models are not here", hint="pip install models")
    if settings.get("fail") == "crash":
        print("model file is corrupt", file=sys.stderr, flush=True)
        os._exit(3)
    if mark := settings.get("mark"):
        with Path(mark).open("a") as file:
            file.write(f"{os.getpid()}\n")
    return Loaded(read=misbehave, facts={"model": "toy"})


def misbehave(request: Request) -> Output | str:
    """Do what the prompt says."""
    match request.prompt.split():
        case ["segfault"]:
            ctypes.string_at(0)
        case ["exit"]:
            os._exit(7)
        case ["sys.exit"]:
            sys.exit("enough")
        case ["hang"]:
            time.sleep(600)
        case ["hang-in-c"]:
            # PyDLL keeps Python's lock: no other thread of the worker runs.
            ctypes.PyDLL(None).sleep(600)
        case ["sleep", seconds]:
            time.sleep(float(seconds))
        case ["answer", length]:
            return "x" * int(length)
        case ["raise"]:
            raise ValueError("bad\nvalue")
        case ["refuse"]:
            raise RejectedError("not this page", hint="another page")
        case ["noise"]:
            print("noise " * 400_000, flush=True)
            subprocess.run(["echo", "from a child"], check=True)
        case ["child"]:
            subprocess.Popen(["sleep", "600"])
            time.sleep(600)
        case ["leave-a-child", file]:
            Path(file).write_text(str(subprocess.Popen(["sleep", "600"]).pid))
            os._exit(7)
        case ["fork"]:
            if os.fork() == 0:
                return "from the child"
            os.wait()
        case ["surrogate"]:
            return "\ud800"
        case ["pid"]:
            return str(os.getpid())
        case ["output"]:
            return Output(text="t", finish_reason="length", output_tokens=3)
    return f"read {request.id}"


def read(request: Request) -> str:
    """For the kind `python`."""
    return f"{request.id}: {request.prompt}"


async def read_later(request: Request) -> Output:
    """The same, asynchronously."""
    await asyncio.sleep(0)
    return Output(text=f"later {request.id}", finish_reason="stop")


def read_number(request: Request) -> Any:
    """Returns what is no text."""
    return len(request.id)


def two_arguments(request: Request, more: str) -> str:
    """Cannot be called with a request alone."""
    raise EngineError(f"never called {request} {more}")


def describe(request: Request) -> Output:
    """What arrived: opens each page."""
    kinds = []
    for page in request.images:
        if isinstance(page, PdfPage):
            kinds.append(f"PDF{page.page}")
        else:
            with open_image(page) as image:
                kinds.append(str(image.format))
    text = f"prompt={request.prompt} pages={','.join(kinds)} max={request.max_tokens}"
    return Output(text=text, finish_reason="stop", input_tokens=11, output_tokens=7)


def read_at_length(request: Request) -> Output:
    """A long answer that was cut off."""
    return Output(text="lorem ipsum " * 500, finish_reason="length")


def where_is_it(request: Request) -> str:
    """The folder of the page, and who may enter it."""
    (page,) = request.images
    assert isinstance(page, Path)
    return f"{page.parent} {oct(page.parent.stat().st_mode)}"


def environment(request: Request) -> str:
    """The environment of the process, as JSON."""
    assert request.prompt == "environment"
    return json.dumps(dict(os.environ))
