"""Asking for what is missing: texts in batches, figures and queries one by one, each answer kept at once.

Protocol: docs/embedding.md.

Texts are no longer than the model takes: cut at the end, by tokens. A token stands for at least a byte, so a text with
fewer bytes than the limit needs no counting. Longer ones are counted by the server's own tokenizer (vLLM); where there
is none, they are sent whole, and the server decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from loupe.engines.chat.server_tokens import ServerTokenizer
from loupe.errors import AccountError, PageError
from loupe.inference.crew import work_together
from loupe.inference.progress import Progress
from loupe.runs.folder import RunFolder
from loupe.studies.embed.client import Client, Failed, Text
from loupe.studies.embed.corpus import Corpus, Figure, clean, data_url, pages, text_row
from loupe.studies.embed.crops import IMAGE_TOKENS, Cutter
from loupe.studies.embed.inputs import Query
from loupe.studies.embed.journal import Settings, VectorJournal
from loupe.studies.embed.plan import Plan, figure_messages, query_messages, query_text
from loupe.studies.embed.received_vectors import Vector
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

    def refuse(_: AccountError) -> None:
        stage.client.refused = True

    async def work() -> None:
        while not (stage.progress.stopping or stage.client.refused):
            item = next(items, None)
            if item is None:
                return
            stage.progress.in_flight += 1
            try:
                await ask(item)
            finally:
                stage.progress.in_flight -= 1

    await work_together([work() for _ in range(workers)], stage.progress, refuse)


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


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is sent for a text: itself, or the ids of as many of its tokens as fit. `unknown`: nobody could count."""

    text: Text
    truncated: bool = False
    unknown: bool = False


async def fit(text: str, limit: int, tokenizer: ServerTokenizer) -> Fitted:
    """A text that has at most `limit` tokens, special ones included."""
    # Special tokens: a start and an end at most, in the models that embed.
    if len(text.encode("utf-8", "replace")) <= limit - 8:
        return Fitted(text)
    whole, plain = await tokenizer.tokens(text, special=True), await tokenizer.tokens(text)
    if whole is None or plain is None:
        return Fitted(text, unknown=True)
    if len(whole) <= limit:
        return Fitted(text)
    before = _before(whole, plain)
    after = whole[before + len(plain) :]
    return Fitted(whole[:before] + plain[: limit - before - len(after)] + after, truncated=True)


async def fit_as_text(text: str, limit: int, tokenizer: ServerTokenizer) -> Fitted:
    """The same where only a text can be sent, as part of a conversation; `limit` counts its own tokens."""
    if len(text.encode("utf-8", "replace")) <= limit:
        return Fitted(text)
    plain = await tokenizer.tokens(text)
    if plain is None:
        return Fitted(text, unknown=True)
    if len(plain) <= limit:
        return Fitted(text)
    cut = await tokenizer.text(plain[:limit])
    # The last token may end within a character.
    return Fitted(text, unknown=True) if cut is None else Fitted(cut.rstrip("\ufffd"), truncated=True)


def _before(whole: list[int], plain: list[int]) -> int:
    """How many special tokens stand before the text; 0 where the text is not found in the whole."""
    extra = len(whole) - len(plain)
    return next((start for start in range(extra + 1) if whole[start : start + len(plain)] == plain), 0)
