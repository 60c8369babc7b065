"""Request what is missing from an embedding server: texts in batches, figures and queries one by one.

Protocol: docs/embedding.md. `/v1/embeddings` as OpenAI has it, or vLLM's `/pooling`. Each answer is kept at once. What
fails as a batch is requested in halves, so one poisonous item costs itself only. A server that fails at everything ends
the stage, resumable.

Texts are no longer than the model takes: cut at the end, by tokens. A token stands for at least a byte, so a text with
fewer bytes than the limit needs no counting. Longer ones are counted by the server's own tokenizer (vLLM); without one,
they are sent whole, and the server decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar

from loupe.engines.chat.discovery import Patience, beside_url, join_url, probe
from loupe.engines.chat.exchange import Exchange, ServerTokenizer
from loupe.engines.chat.http_failures import NotFoundError
from loupe.errors import (
    AccountError,
    EngineError,
    EngineUnavailableError,
    NoAnswerError,
    PageError,
    RejectedError,
    TransientEngineError,
)
from loupe.features.embed.corpus import IMAGE_TOKENS, Corpus, Cutter, Figure, clean, data_url, pages, text_row
from loupe.features.embed.inputs import Endpoint, Plan, Query, figure_messages, query_messages, query_text
from loupe.features.embed.journal import BadVector, MalformedAnswerError, Settings, Vector, VectorJournal, read_vectors
from loupe.inference.crew import work_together
from loupe.inference.progress import Progress
from loupe.inference.retries import Policy, Retries
from loupe.runs.folder import RunFolder
from loupe.typed import encode_json
from loupe.types import Prediction

#: A text, or the ids of its tokens.
Text: TypeAlias = str | list[int]

#: Longer answers are no answers.
MOST_ANSWER_BYTES = 256_000_000
_POLICY = Policy(retries=4)
#: What may pass had its time while the whole batch was tried again.
_HALVES = replace(_POLICY, retries=0)
#: A server that computes may take a while to say that it is there.
_PATIENCE = Patience(5.0, 30.0)
#: Requests without a vector one after the other, of whatever kind: the server is at fault, not the items.
_MOST_IN_A_ROW = 20


@dataclass(frozen=True, slots=True)
class Failed:
    """The reason why an item has no vector. `final`: the server refuses it, and would again."""

    reason: str
    final: bool = False


@dataclass(slots=True, kw_only=True)
class Client:
    """One server and model. `refused`: it takes no more requests, so none is sent again."""

    exchange: Exchange
    base_url: str
    model: str
    endpoint: Endpoint
    progress: Progress
    dimension: int | None = None
    refused: bool = False
    _failed_in_a_row: int = 0

    async def texts(
        self, texts: Sequence[Text], keep: Callable[[Sequence[tuple[int, Vector]]], None]
    ) -> Mapping[int, Failed]:
        """Ask for many texts in one request. `keep` gets places and vectors; returns those that failed.

        Raises EngineUnavailableError where the server cannot go on.
        """
        return await self._halves(list(range(len(texts))), texts, keep, _POLICY)

    async def chat(self, messages: Sequence[Mapping[str, Any]]) -> Vector | Failed:
        """Ask for one item as a conversation: an image with its caption, or a query with its instruction."""
        try:
            (found,) = await self._ask({"messages": list(messages)}, 1, _POLICY)
        except EngineUnavailableError:
            raise
        except EngineError as error:
            return await self._note_failure(error)
        return await self._note(found)

    async def _halves(
        self,
        places: list[int],
        texts: Sequence[Text],
        keep: Callable[[Sequence[tuple[int, Vector]]], None],
        policy: Policy,
    ) -> dict[int, Failed]:
        """Ask for the texts at these places; where the whole batch fails, at once for either half."""
        try:
            found = await self._ask({"input": [texts[place] for place in places]}, len(places), policy)
        except EngineUnavailableError:
            raise
        except EngineError as error:
            if self._is_over():
                return dict.fromkeys(places, Failed(error.message[:500]))
            if len(places) == 1:
                return {places[0]: await self._note_failure(error)}
            if not isinstance(error, RejectedError | NoAnswerError):
                await self._note_failure(error)
            middle = len(places) // 2
            failed = await self._halves(places[:middle], texts, keep, _HALVES)
            return failed | await self._halves(places[middle:], texts, keep, _HALVES)
        bad: dict[int, Failed] = {}
        good: list[tuple[int, Vector]] = []
        for place, one in zip(places, found, strict=True):
            if isinstance(one, BadVector):
                bad[place] = Failed(one.reason)
            else:
                self._good(one)
                good.append((place, one))
        keep(good)
        if not bad or len(places) == 1:
            return {place: await self._counted(one) for place, one in bad.items()}
        # The others are kept; what came back bad is asked once more, alone.
        failed = {}
        for place in bad:
            failed |= await self._halves([place], texts, keep, policy)
        return failed

    def _is_over(self) -> bool:
        return self.refused or self.progress.stopping

    def _good(self, vector: Vector) -> None:
        self._failed_in_a_row = 0
        self.dimension = self.dimension or vector.size

    async def _note(self, found: Vector | BadVector) -> Vector | Failed:
        if isinstance(found, BadVector):
            return await self._counted(Failed(found.reason))
        self._good(found)
        return found

    async def _note_failure(self, error: EngineError) -> Failed:
        """A failed item, or a batch that nothing says the items of are wrong, unless the server is gone."""
        return await self._counted(Failed(error.message[:500], final=isinstance(error, RejectedError | NoAnswerError)))

    async def _counted(self, failed: Failed) -> Failed:
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= _MOST_IN_A_ROW:
            raise EngineUnavailableError(
                f"{self._failed_in_a_row} requests in a row brought no vector; the last one: {failed.reason}",
                hint="is this an embedding model, and does it take images? what came back so far is kept",
            )
        if not failed.final and await probe(self.exchange.session, self.base_url, _PATIENCE) is None:
            raise EngineUnavailableError(
                f"no server answers at {self.exchange.redaction.text(self.base_url)} any more: {failed.reason}",
                hint="once it runs again, repeat the same command: what came back so far is kept",
            )
        return failed

    async def _ask(self, what: Mapping[str, Any], count: int, policy: Policy) -> list[Vector | BadVector]:
        """One request, tried again while trying again may help."""
        body = encode_json({"model": self.model, **what, "encoding_format": "float"})
        retries, asked_again = Retries(policy, self.progress, self._is_over), False
        while True:
            try:
                return read_vectors(await self._post(body), count, self.dimension)
            except MalformedAnswerError:
                if asked_again:
                    raise
                asked_again = True
            except TransientEngineError as error:
                if not await retries.again(error):
                    raise

    async def _post(self, body: bytes) -> bytes:
        pooling = self.endpoint == "pooling"
        url = beside_url(self.base_url, "/pooling") if pooling else join_url(self.base_url, "embeddings")
        try:
            return (await self.exchange.ask(url, body)).body
        except NotFoundError as error:
            other = "embeddings" if pooling else "pooling"
            where, status = self.exchange.redaction.text(url), error.message.partition(":")[0]
            raise EngineUnavailableError(
                f"{where} is not there ({status}), or not for model {self.model!r}",
                hint=f"is this an embedding server? --endpoint {other}, or another --base-url or --model",
            ) from None


T = TypeVar("T")

#: Requests with many texts that are in flight at once: one is computed while the next one travels.
TEXT_REQUESTS = 2
#: Tokens of a conversation beside the image and its caption: roles and marks of the template.
_TEMPLATE_TOKENS = 64


@dataclass(slots=True, kw_only=True)
class Stage:
    """The parts that the three kinds of items share while they are asked for."""

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
    """The form in which a text is sent: itself, or the ids of as many of its tokens as fit. `unknown`: nobody could
    count.
    """

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
    """Count the special tokens before the text; 0 if the text is not found in the whole."""
    extra = len(whole) - len(plain)
    return next((start for start in range(extra + 1) if whole[start : start + len(plain)] == plain), 0)
