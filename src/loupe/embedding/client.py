"""Asking an embedding server: batches of texts, one request for each image or chat, retries, and bad answers set apart.

Protocol: docs/embedding.md. `/v1/embeddings` as OpenAI has it, or vLLM's `/pooling`. What fails as a batch is asked in
halves, so that one poisonous item costs itself only. A server that fails at everything ends the stage, resumable.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from loupe.embedding.answers import BadVector, MalformedAnswerError, Vector, read_vectors
from loupe.engines.shared.discovery import Patience, join_url, probe, root_url
from loupe.engines.shared.http_body import read_body
from loupe.engines.shared.http_failures import check_wait, failure
from loupe.engines.shared.posting import post
from loupe.engines.shared.redaction import Redaction
from loupe.errors import (
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    RejectedError,
    TransientEngineError,
)
from loupe.typed import encode_json

if TYPE_CHECKING:
    import aiohttp

Endpoint: TypeAlias = Literal["embeddings", "pooling"]
#: A text, or the ids of its tokens.
Text: TypeAlias = str | list[int]

_MOST_BYTES = 256_000_000
_BACKOFF, _BACKOFF_CAP = 0.5, 8.0
_RATE_WAITS = 30
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
    """One server and model. `retries` counts further attempts after an error that may pass."""

    session: aiohttp.ClientSession
    base_url: str
    model: str
    endpoint: Endpoint
    redaction: Redaction
    retries: int = 4
    dimension: int | None = None
    asked: int = 0
    _failed_in_a_row: int = 0
    _jitter: random.Random = field(default_factory=random.Random)

    async def texts(
        self, texts: Sequence[Text], keep: Callable[[Sequence[tuple[int, Vector]]], None]
    ) -> Mapping[int, Failed]:
        """Ask for many texts in one request. `keep` gets places and vectors; returns those that failed.

        Raises EngineUnavailableError where the server cannot go on.
        """
        return await self._halves(list(range(len(texts))), texts, keep, retries=self.retries)

    async def chat(self, messages: Sequence[Mapping[str, Any]]) -> Vector | Failed:
        """Ask for one item as a conversation: an image with its caption, or a query with its instruction."""
        try:
            (found,) = await self._ask({"messages": list(messages)}, 1, self.retries)
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
        *,
        retries: int,
    ) -> dict[int, Failed]:
        """Ask for the texts at these places; where the whole batch fails, at once for either half.

        What may pass had its time while the whole batch was tried again.
        """
        try:
            found = await self._ask({"input": [texts[place] for place in places]}, len(places), retries)
        except EngineUnavailableError:
            raise
        except EngineError as error:
            if len(places) == 1:
                return {places[0]: await self._note_failure(error)}
            if not isinstance(error, RejectedError):
                await self._note_failure(error)
            middle = len(places) // 2
            failed = await self._halves(places[:middle], texts, keep, retries=0)
            return failed | await self._halves(places[middle:], texts, keep, retries=0)
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
            failed |= await self._halves([place], texts, keep, retries=retries)
        return failed

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
        return await self._counted(Failed(error.message[:500], final=isinstance(error, RejectedError)))

    async def _counted(self, failed: Failed) -> Failed:
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= _MOST_IN_A_ROW:
            raise EngineUnavailableError(
                f"{self._failed_in_a_row} requests in a row brought no vector; the last one: {failed.reason}",
                hint="is this an embedding model, and does it take images? what came back so far is kept",
            )
        if not failed.final and await probe(self.session, self.base_url, _PATIENCE) is None:
            raise EngineUnavailableError(
                f"no server answers at {self.redaction.text(self.base_url)} any more: {failed.reason}",
                hint="start it again, then repeat the same command: what came back so far is kept",
            )
        return failed

    async def _ask(self, what: Mapping[str, Any], count: int, retries: int) -> list[Vector | BadVector]:
        """One request, tried again up to `retries` times while trying again may help."""
        body = encode_json({"model": self.model, **what, "encoding_format": "float"})
        tries, waits, asked_again = 0, 0, False
        while True:
            try:
                return read_vectors(await self._post(body), count, self.dimension)
            except MalformedAnswerError:
                if asked_again:
                    raise
                asked_again = True
            except TransientEngineError as error:
                check_wait(error)
                if error.rate and waits < (_RATE_WAITS if self.retries else 0):
                    waits += 1
                elif not error.rate and tries < retries:
                    tries += 1
                else:
                    raise
                await self._pause(error, max(tries, 1))

    async def _pause(self, error: TransientEngineError, tries: int) -> None:
        wait = error.retry_after
        if wait is None:
            wait = min(_BACKOFF * 2 ** (tries - 1), _BACKOFF_CAP) * self._jitter.uniform(0.8, 1.2)
        await asyncio.sleep(wait)

    async def _post(self, body: bytes) -> bytes:
        """One HTTP request; every failure is an error of ours."""
        import aiohttp

        self.asked += 1
        pooling = self.endpoint == "pooling"
        url = f"{root_url(self.base_url)}/pooling" if pooling else join_url(self.base_url, "embeddings")
        try:
            async with post(self.session, url, body) as response:
                answer = await read_body(response, _MOST_BYTES)
        except TimeoutError:
            raise EngineTimeoutError("no full answer within the time limit") from None
        except (aiohttp.ClientError, OSError) as error:
            raise TransientEngineError(self.redaction.text(f"{type(error).__name__}: {error}")) from None
        with self.redaction.errors():
            if response.status == 200:
                return answer
            headers = response.headers
            if response.status in (404, 405):
                other = "embeddings" if pooling else "pooling"
                where = self.redaction.text(url)
                raise EngineUnavailableError(
                    f"{where} is not there (HTTP {response.status}), or not for model {self.model!r}",
                    hint=f"is this an embedding server? --endpoint {other}, or another --base-url or --model",
                )
            where = self.redaction.text(headers.get("Location", ""))
            raise failure(response.status, self.redaction.data(answer), headers.get("Retry-After"), location=where)
