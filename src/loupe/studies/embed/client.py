"""Asking an embedding server: batches of texts, one request for each image or chat, retries, and bad answers set apart.

Protocol: docs/embedding.md. `/v1/embeddings` as OpenAI has it, or vLLM's `/pooling`. What fails as a batch is asked in
halves, so that one poisonous item costs itself only. A server that fails at everything ends the stage, resumable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from loupe.engines.chat.discovery import Patience, beside_url, join_url, probe
from loupe.engines.chat.exchange import Exchange
from loupe.engines.chat.http_failures import NotFoundError
from loupe.errors import EngineError, EngineUnavailableError, NoAnswerError, RejectedError, TransientEngineError
from loupe.inference.progress import Progress
from loupe.inference.retries import Policy, Retries
from loupe.studies.embed.received_vectors import BadVector, MalformedAnswerError, Vector, read_vectors
from loupe.typed import encode_json

Endpoint: TypeAlias = Literal["embeddings", "pooling"]
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
    """Why an item has no vector. `final`: the server refuses it, and would again."""

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
