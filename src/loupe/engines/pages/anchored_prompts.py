"""Prompts with `{anchor_text}` in them: each is asked with the text and the positions of its own page there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version

from loupe.data.extras import need
from loupe.engines.pages.anchor_text import MARK, PACKAGES
from loupe.engines.pages.page_reader import page_reader
from loupe.types import Engine, Output, Request


def anchored_by(prompts: Iterable[str]) -> str:
    """What makes the anchor text, with releases, where a prompt wants one; else "".

    Raises MissingToolError where one is wanted and the packages are not there.
    """
    if not any(MARK in prompt for prompt in prompts):
        return ""
    need(*PACKAGES, extra="anchors", purpose=f"a prompt with {MARK}")
    return "+".join(f"{package}-{version(package)}" for package in PACKAGES)


@asynccontextmanager
async def with_anchors(engine: Engine, *, timeout: float) -> AsyncIterator[Engine]:
    """The engine, asked with the anchor text of the request's pages in the place of the mark."""
    async with page_reader(timeout=timeout) as reader:

        async def predict(request: Request) -> Output:
            if MARK not in request.prompt:
                return await engine.predict(request)
            anchored_by([request.prompt])
            texts = [await reader.anchor_text(page) for page in request.images]
            prompt = request.prompt.replace(MARK, "\n".join(texts))
            return await engine.predict(replace(request, prompt=prompt))

        yield replace(engine, predict=predict)
