"""Asking for what is missing: texts in batches, figures and queries one by one, each answer kept at once.

Protocol: docs/embedding.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from loupe.embedding.answers import Vector
from loupe.embedding.client import Client, Failed
from loupe.embedding.corpus import Corpus, Figure, clean, data_url, pages, text_row
from loupe.embedding.crops import IMAGE_TOKENS, Cutter
from loupe.embedding.inputs import Query
from loupe.embedding.journal import Settings, VectorJournal
from loupe.embedding.limits import Fitted, fit, fit_as_text
from loupe.embedding.plan import Plan, figure_messages, query_messages, query_text
from loupe.engines.shared.server_tokens import ServerTokenizer
from loupe.errors import PageError
from loupe.inference.progress import Progress
from loupe.runs.folder import RunFolder
from loupe.types import Prediction

T = TypeVar("T")

#: Requests with many texts that are in flight at once: one is computed while the next one travels.
TEXT_REQUESTS = 2
#: Tokens of a conversation beside the image and its caption: roles and marks of the template.
_TEMPLATE_TOKENS = 64


@dataclass(slots=True, kw_only=True)
class Stage:
    """What the three kinds of items share while they are asked for."""

    plan: Plan
    run: RunFolder
    journal: VectorJournal
    client: Client
    tokenizer: ServerTokenizer
    cutter: Cutter
    progress: Progress
    settings: Settings
    failed: dict[str, Failed] = field(default_factory=dict)
    uncounted: set[str] = field(default_factory=set)
    taken: bool = False
    _refused: dict[str, str] = field(default_factory=dict)

    def ended(self, key: str, failed: Failed | None) -> None:
        """Count an item; a refusal is kept, so that nobody asks again.

        But only once the server has taken another item: one that takes none of a kind is the wrong server.
        """
        outcome: Literal["ok", "error", "rejected"] = "ok"
        if failed is not None:
            outcome = "rejected" if failed.final else "error"
            if failed.final:
                self._refused[key] = failed.reason
            else:
                self.failed[key] = failed
        else:
            self.taken = True
        if self.taken:
            for refused, reason in self._refused.items():
                self.journal.refuse(refused, reason)
            self._refused.clear()
        self.progress.count(Prediction(sample=key, outcome=outcome))

    def next_kind(self) -> None:
        """Begin with items of another kind."""
        self.failed |= {key: Failed(reason) for key, reason in self._refused.items()}
        self._refused.clear()
        self.taken = False


async def ask_all(stage: Stage, corpus: Corpus, queries: Sequence[Query], missing: set[str]) -> None:
    """Texts in batches, then figures and queries, each kind with as many requests in flight as suits it."""

    def texts() -> Iterator[tuple[str, str]]:
        for page in pages(stage.plan, stage.run):
            key = text_row(page).key
            if key in missing:
                missing.discard(key)
                yield key, clean(page.text)

    await _ask_texts(stage, texts())
    stage.next_kind()
    figures = _first_of_each([(figure.row.key, figure) for figure in corpus.figures], missing)
    await _in_parallel(stage, figures, stage.plan.image_batch, lambda item: _ask_figure(stage, *item))
    stage.next_kind()
    asked = _first_of_each(
        [(row.key, clean(query.text)) for row, query in zip(corpus.queries, queries, strict=True)], missing
    )
    settings = stage.settings
    if settings.query_format == "system":
        await _in_parallel(stage, asked, stage.plan.image_batch, lambda item: _ask_query(stage, *item))
        stage.next_kind()
        return
    form: Literal["instruct", "plain"] = "instruct" if settings.query_format == "instruct" else "plain"
    await _ask_texts(stage, ((key, query_text(text, settings.instruction, form)) for key, text in asked))
    stage.next_kind()


def _first_of_each(items: Sequence[tuple[str, T]], missing: set[str]) -> Iterator[tuple[str, T]]:
    """Items whose vector is missing; of equal ones the first."""
    for key, item in items:
        if key in missing:
            missing.discard(key)
            yield key, item


async def _in_parallel(stage: Stage, items: Iterator[T], workers: int, ask: Callable[[T], Awaitable[None]]) -> None:
    """Work through items with so many at once. The first error that ends the stage ends all of them."""

    async def work() -> None:
        while not stage.progress.stopping:
            item = next(items, None)
            if item is None:
                return
            stage.progress.in_flight += 1
            try:
                await ask(item)
            finally:
                stage.progress.in_flight -= 1

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    for task in tasks:
        stage.progress.watch(task)
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ask_texts(stage: Stage, items: Iterator[tuple[str, str]]) -> None:
    def batches() -> Iterator[list[tuple[str, str]]]:
        batch: list[tuple[str, str]] = []
        for item in items:
            batch.append(item)
            if len(batch) == stage.plan.text_batch:
                yield batch
                batch = []
        if batch:
            yield batch

    await _in_parallel(stage, batches(), TEXT_REQUESTS, lambda batch: _ask_batch(stage, batch))


async def _ask_batch(stage: Stage, batch: Sequence[tuple[str, str]]) -> None:
    fitted = [(key, await fit(text, stage.settings.max_model_len, stage.tokenizer)) for key, text in batch]
    stage.uncounted |= {key for key, one in fitted if one.unknown}
    # A server takes texts or tokens in one request, not both.
    await _ask_group(stage, [(key, one) for key, one in fitted if isinstance(one.text, str)])
    await _ask_group(stage, [(key, one) for key, one in fitted if not isinstance(one.text, str)])


async def _ask_group(stage: Stage, group: Sequence[tuple[str, Fitted]]) -> None:
    def keep(vectors: Sequence[tuple[int, Vector]]) -> None:
        stage.journal.keep((group[place][0], vector, group[place][1].truncated) for place, vector in vectors)

    if group:
        failed = await stage.client.texts([one.text for _, one in group], keep)
        for place, (key, _) in enumerate(group):
            stage.ended(key, failed.get(place))


async def _ask_figure(stage: Stage, key: str, figure: Figure) -> None:
    limit = stage.settings.max_model_len - IMAGE_TOKENS - _TEMPLATE_TOKENS
    caption = await fit_as_text(figure.caption, max(limit, 1), stage.tokenizer)
    if caption.unknown:
        stage.uncounted.add(key)
    try:
        image = await stage.cutter.encode(figure.crop)
    except PageError as error:
        stage.ended(key, Failed(error.message))
        return
    assert isinstance(caption.text, str)
    messages = figure_messages(data_url(image.mime, image.data), caption.text)
    await _keep_chat(stage, key, messages, truncated=caption.truncated)


async def _ask_query(stage: Stage, key: str, text: str) -> None:
    fitted = await fit_as_text(text, stage.settings.max_model_len - _TEMPLATE_TOKENS, stage.tokenizer)
    assert isinstance(fitted.text, str)
    await _keep_chat(stage, key, query_messages(fitted.text, stage.settings.instruction), truncated=fitted.truncated)


async def _keep_chat(stage: Stage, key: str, messages: Sequence[dict[str, object]], *, truncated: bool) -> None:
    found = await stage.client.chat(messages)
    if isinstance(found, Failed):
        stage.ended(key, found)
        return
    stage.journal.keep([(key, found, truncated)])
    stage.ended(key, None)
