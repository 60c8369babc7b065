"""Reach the servers of an engine before the first sample, and share requests between them.

Key, addresses, model, and what to record: docs/protocols/engines.md#discovery (model ids, server kinds). What a server
offers before any page is sent names a run, or shows that a finished one is another's.

A request goes to the least loaded of several servers of one model; a dead one is out until it answers again.
Out is who cannot be reached, says that it cannot go on, or fails several times in a row: a broken server fails fast, is
therefore always the least loaded one, and would draw all requests to itself. After a pause that doubles each time it is
asked for its models, not for a page. A refusal for too many requests only pauses a server for as long as it says, and
while one pauses, the dead ones beside it are not asked in its place.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from loupe.data.certificates import open_client
from loupe.engines.chat.discovery import (
    PORTS,
    VARIABLES,
    Addresses,
    Endpoint,
    Patience,
    Server,
    addresses_of,
    choose_model,
    identify,
    is_named,
    located,
    normalize_base_url,
    origin,
    probe,
    shown,
)
from loupe.engines.chat.http_failures import OutOfMemoryError, UnreachableError
from loupe.errors import (
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    LoupeError,
    NoAnswerError,
    RejectedError,
    TransientEngineError,
    UsageError,
    word,
)

if TYPE_CHECKING:
    import aiohttp

    from loupe.engines.chat.settings import Settings


#: Where `--api-key-file` and `--api-key` leave a key: it is for the server of this command, whoever names that.
GIVEN_KEY = "LOUPE_GIVEN_API_KEY"
_OURS, _USUAL = "LOUPE_API_KEY", "OPENAI_API_KEY"
#: Variables with a key → the one that names the server which the key is for.
_SERVER_OF = dict(zip((_OURS, _USUAL), VARIABLES, strict=False))
#: A server that Loupe starts itself.
STARTED = Addresses(("http://127.0.0.1",))
#: What servers without keys are sent.
NO_KEY = "EMPTY"
#: Who named a server that nobody named (`base_url_from` of the facts).
FOUND = "found on this machine"

#: Servers that refuse a model which they do not list, or would download it. Others (gateways, llama-server, which takes
#: any name) may serve more than they say.
_STRICT_SERVERS = {"vllm", "sglang", "mlx_vlm", "ollama", "loupe"}
#: Whether a server says what it is or not, nobody waits longer for it.
_IDENTIFY_SECONDS = 5.0


def key_variables(addresses: Addresses, own: str, environment: Mapping[str, str]) -> list[str]:
    """The variables whose key may go to these servers, most important first; none unless a person named each of them.

    A key goes to the server that is named beside it. `own`, which a profile names, is for the profile's `base_url`.
    LOUPE_API_KEY and OPENAI_API_KEY go to other servers only while LOUPE_BASE_URL and OPENAI_BASE_URL name none, and
    OPENAI_API_KEY neither in place of a profile's own key nor to the server of another variable.
    The same rule for people: docs/engines/openai.md#profile.
    """
    if not addresses.are_named:
        return []
    beside = [own] if own and not addresses.variable else []
    usual = [] if beside or addresses.variable not in ("", _SERVER_OF[_USUAL]) else [_USUAL]
    free = [name for name in (_OURS, *usual) if _may_go(name, addresses, environment)]
    return [GIVEN_KEY, *beside, *free]


def _may_go(name: str, addresses: Addresses, environment: Mapping[str, str]) -> bool:
    """True if the server that this key is for is one of `addresses`, as all of them are, or is named nowhere."""
    home = environment.get(_SERVER_OF[name], "").strip()
    if not is_named(home):
        return True
    try:
        return {origin(url) for url in addresses.urls} == {origin(home)}
    except ValueError:
        return False


def key_for(addresses: Addresses, own: str, environment: Mapping[str, str]) -> str:
    """The API key for these servers, by the rule of `key_variables`; `NO_KEY` where there is none.

    Raises EngineUnavailableError if the profile's `own` variable is not set, or if the key cannot stand in a header.
    """
    names = key_variables(addresses, own, environment)
    key = next((key for name in names if (key := environment.get(name, "").strip())), "")
    if not key and own in names:
        raise EngineUnavailableError(f"no API key in the environment variable {own}", hint=f"export {own}=KEY")
    key = key or NO_KEY
    if not (key.isascii() and key.isprintable()):
        raise EngineUnavailableError("the API key holds invalid characters", hint="use --api-key-file FILE")
    return key


def key_hint(addresses: Addresses, own: str, environment: Mapping[str, str]) -> str:
    """Say what to do if these servers refuse the key: the variable that is sent to them, and which one is not."""
    names = key_variables(addresses, own, environment)
    sent = next((name for name in names if environment.get(name, "").strip()), names[-1] if names else GIVEN_KEY)
    kept = [] if own in names else [name for name in _SERVER_OF if environment.get(name, "") and name not in names]
    export = f", or export {sent}=KEY" if sent != GIVEN_KEY else ""
    return f"use --api-key-file FILE{export}" + "".join(f" ({name} goes only with {_SERVER_OF[name]})" for name in kept)


@dataclass(frozen=True, slots=True)
class Found:
    """A server that answers, and what it says that it is."""

    endpoint: Endpoint
    server: Server


async def reach(
    addresses: Addresses,
    session: aiohttp.ClientSession,
    *,
    connect_timeout: float,
    key_hint: str,
    ports: Sequence[int] = PORTS,
) -> list[Found]:
    """Every server to be asked, each of which answers. No URL: the one on this machine."""
    found, silent = await reach_any(addresses, session, connect_timeout=connect_timeout, key_hint=key_hint, ports=ports)
    if silent:
        raise _no_answer(silent[0], addresses.variable)
    return found


async def reach_any(
    addresses: Addresses,
    session: aiohttp.ClientSession,
    *,
    connect_timeout: float,
    key_hint: str,
    ports: Sequence[int] = PORTS,
) -> tuple[list[Found], list[str]]:
    """The servers that answer, at least one, and the addresses where nobody answers.

    `key_hint` says what to do where one of them refuses the key.
    """
    urls = (await located(addresses, ports)).urls
    patience = Patience(connect_timeout, connect_timeout)
    bases = list(dict.fromkeys(normalize_base_url(url) for url in urls))
    answers = await asyncio.gather(*(probe(session, base, patience) for base in bases))
    found = [_with_key(endpoint, addresses, key_hint) for endpoint in answers if endpoint is not None]
    silent = [base for base, endpoint in zip(bases, answers, strict=True) if endpoint is None]
    if not found:
        raise _no_answer(silent[0], addresses.variable)
    patience = Patience(connect_timeout, _IDENTIFY_SECONDS)
    servers = await asyncio.gather(*(identify(session, endpoint, patience) for endpoint in found))
    return list(map(Found, found, servers)), silent


def _no_answer(base: str, variable: str = "") -> EngineUnavailableError:
    by = f", which {variable} names" if variable else ""
    return EngineUnavailableError(
        f"no server answers at {shown(base)}{by}", hint="start it, or give its address: --base-url URL"
    )


def _with_key(endpoint: Endpoint, addresses: Addresses, key_hint: str) -> Endpoint:
    if endpoint.needs_key and not addresses.are_named:
        raise EngineUnavailableError(
            f"{shown(endpoint.base_url)} needs a key, which Loupe sends only to servers that you name",
            hint=f"if you trust it, name it: --base-url {shlex.quote(endpoint.base_url)}",
        )
    if endpoint.needs_key:
        raise EngineUnavailableError(
            f"{shown(endpoint.base_url)} refuses the key (HTTP {endpoint.status})", hint=key_hint
        )
    return endpoint


def check_served(model: str, found: Sequence[Found]) -> None:
    """Raise UsageError where a model that is not listed would be refused for every sample, downloaded, or another's.

    Of several servers that list different models, one that answers to any name would answer with another model.
    """
    differ = len({frozenset(each.endpoint.model_ids) for each in found if each.endpoint.model_ids}) > 1
    for each in found:
        listed = each.endpoint.model_ids
        if (differ or each.server.kind in _STRICT_SERVERS) and listed and not is_listed(model, listed):
            raise UsageError(
                f"{shown(each.endpoint.base_url)} does not serve {model!r}, only: {', '.join(listed[:10])}",
                hint=f"use --model {word(listed[0])}",
            )


def places_of(model: str, found: Sequence[Found], silent: Sequence[str]) -> list[Place]:
    """A place for every address; nobody knows yet whether a silent one lists models."""
    lists_it = [is_listed(model, each.endpoint.model_ids) for each in found]
    several = len(found) + len(silent) > 1
    places = [
        Place(
            each.endpoint.base_url,
            lists_models=each.endpoint.models is not None,
            must_list=each.server.kind in _STRICT_SERVERS or (several and listed),
        )
        for each, listed in zip(found, lists_it, strict=True)
    ]
    return places + [Place(url, lists_models=False, must_list=any(lists_it)) for url in silent]


def is_listed(model: str, listed: Sequence[str]) -> bool:
    """True if a list of models holds this one, in a spelling of it that servers take too.

    Ollama lists `name:latest` and takes `name`; Gemini lists `models/name`; OpenRouter takes variants of what it lists,
    `name:nitro`; others take `name-latest` for the last of `name-2026-01-31`.
    """
    base, _, variant = model.partition(":")
    spellings = {model, f"{model}:latest", f"models/{model}", *([base] if variant and "/" in base else [])}
    family = model.removesuffix("latest") if model.endswith("-latest") else None
    return any(name in spellings or (family and name.startswith(family)) for name in listed)


def server_facts(model: str, found: Sequence[Found], silent: Sequence[str] = ()) -> dict[str, str]:
    """Return what run.json keeps about the servers, and where else (`silent`) one may come to answer.

    Where several differ, each fact has all values, and `servers_differ` says which server has which.
    """
    told = [_told(model, each) for each in found]
    addresses = [shown(each.endpoint.base_url) for each in found]
    facts = {"model": model, "base_url": ", ".join([*addresses, *map(shown, silent)])}
    facts |= {name: ", ".join(sorted({each[name] for each in told} - {""})) for name in told[0]}
    listed = list(dict.fromkeys(name for each in found for name in each.endpoint.model_ids))
    if listed and not is_listed(model, listed):
        facts["models_listed"] = ", ".join(listed[:10]) + (", …" if len(listed) > 10 else "")
    if any(each != told[0] for each in told):
        facts["servers_differ"] = "; ".join(
            f"{address}: {each['server']} {each['server_version'] or 'of unknown version'}"
            f", context {each['max_model_len'] or 'unknown'}"
            for address, each in zip(addresses, told, strict=True)
        )
    return {key: value for key, value in facts.items() if value}


def source_of(addresses: Addresses) -> dict[str, str]:
    """The fact who named the servers: a variable, or nobody; none where the command line or the profile did."""
    source = addresses.variable if addresses.are_named else FOUND
    return {"base_url_from": source} if source else {}


def asked_at(facts: Mapping[str, str]) -> Addresses:
    """The first address of an open engine, and who named it, for further questions to the same server."""
    source = facts.get("base_url_from", "")
    url = facts.get("base_url", "").split(", ")[0]
    return Addresses() if source == FOUND or not url else Addresses((url,), source)


def chosen_server(facts: Mapping[str, str]) -> str:
    """Say which server is asked, and why, for people; "" if command line or profile name it, or there is none."""
    source = facts.get("base_url_from", "")
    return f"asking {facts['base_url']}, {source if source == FOUND else f'named by {source}'}" if source else ""


def unlisted_model(facts: Mapping[str, str]) -> str:
    """Return the message about servers that do not list the model that they were asked for; "" if they do, or list
    none.
    """
    listed = facts.get("models_listed")
    return (
        f"the server does not list {facts['model']!r}, only: {listed}; it may have answered with that" if listed else ""
    )


def _told(model: str, found: Found) -> dict[str, str]:
    entry = next((entry for entry in found.endpoint.models or () if entry.get("id") == model), {})
    length = str(entry.get("max_model_len") or "")
    return {"server": found.server.kind, "server_version": found.server.version, "max_model_len": length}


#: Failures in a row that take a server out although it can be reached.
FAILURES: Final = 3
#: Seconds until a server that is out is asked again: the first time, and at most.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
#: Seconds without requests for a server that refuses more of them and does not say until when.
_REFUSED_PAUSE: Final = 1.0


@dataclass(slots=True, eq=False)
class Place:
    """One server: how many requests it has, how many it ever had, and whether it is out.

    `lists_models`: it did so at the start, so that one which does not any more is not up. `must_list`: one that lists
    models, and ours is not among them, is another one. `out_until` is when one
    that is out is asked for its models again; `refuses_until` is when it takes requests again by its own word.
    """

    base_url: str
    lists_models: bool = True
    must_list: bool = False
    load: int = 0
    asked: int = 0
    is_out: bool = False
    out_until: float = 0.0
    refuses_until: float = 0.0
    refusal: str = ""
    failures: int = 0
    times_out: int = 0
    gave_up: bool = False


@dataclass(slots=True)
class EndpointPool:
    """The servers of an engine. `check` says whether one that was out may have requests again."""

    places: Sequence[Place]
    check: Callable[[Place], Awaitable[bool]]
    clock: Callable[[], float] = time.monotonic
    _checks: dict[Place, asyncio.Task[None]] = field(default_factory=dict)

    def choose(self, tried: Collection[Place] = ()) -> Place | None:
        """The least loaded server that was not tried yet. None where no other may be asked.

        The first choice is never None: with all of them out, it is the one whose pause ends first. Raises
        TransientEngineError (rate) where one of several servers only wants to be left alone for some time.
        """
        now = self.clock()
        several = len(self.places) > 1
        for place in self.places if several else ():
            if place.is_out and place.out_until <= now and place not in self._checks:
                self._checks[place] = asyncio.create_task(self._look_again(place))
        up = [each for each in self.places if not each.is_out]
        ready = [each for each in up if each.refuses_until <= now and each not in tried]
        if ready:
            return min(ready, key=lambda place: (place.load, place.asked))
        if several and (pausing := [each for each in up if each.refuses_until > now]):
            first = min(pausing, key=lambda place: place.refuses_until)
            raise TransientEngineError(first.refusal, retry_after=first.refuses_until - now, rate=True)
        return None if tried else min(self.places, key=lambda place: place.out_until)

    @contextmanager
    def asking(self, place: Place) -> Iterator[None]:
        """Count a request to this server, and learn from how it ends."""
        place.load += 1
        place.asked += 1
        try:
            yield
        except (RejectedError, NoAnswerError):
            self.bring_back(place)
            raise
        except EngineError as error:
            self._failed(place, error)
            raise
        else:
            self.bring_back(place)
        finally:
            place.load -= 1

    def bring_back(self, place: Place) -> None:
        """This server answers. A refusal of more requests stands: the answer may be an older one."""
        place.is_out = place.gave_up = False
        place.failures = place.times_out = 0
        place.out_until = 0.0

    def status(self) -> str:
        """Say how many servers are out; nothing while all are in."""
        out = sum(place.is_out for place in self.places)
        return f"{out} of {len(self.places)} servers out" if out and len(self.places) > 1 else ""

    def take_out(self, place: Place) -> None:
        """No requests for this server until it was asked again; each time it is out longer."""
        if place.is_out and place.out_until > self.clock():
            return  # Requests that were in flight when it died tell nothing new.
        place.is_out, place.failures = True, 0
        place.out_until = self.clock() + min(FIRST_PAUSE * 2**place.times_out, LONGEST_PAUSE)
        place.times_out += 1

    @property
    def all_gave_up(self) -> bool:
        """True if every server is out of memory."""
        return all(place.gave_up for place in self.places)

    async def close(self) -> None:
        """End the looking at servers that are out."""
        checks = list(self._checks.values())
        for task in checks:
            task.cancel()
        await asyncio.gather(*checks, return_exceptions=True)

    def _failed(self, place: Place, error: EngineError) -> None:
        if isinstance(error, OutOfMemoryError | UnreachableError):
            place.gave_up = isinstance(error, OutOfMemoryError)
            self.take_out(place)
        elif isinstance(error, TransientEngineError) and error.rate:
            pause = _REFUSED_PAUSE if error.retry_after is None else error.retry_after
            place.refuses_until, place.refusal = max(place.refuses_until, self.clock() + pause), error.message
        elif isinstance(error, TransientEngineError | EngineTimeoutError):
            place.failures += 1
            if place.failures >= FAILURES:
                self.take_out(place)

    async def _look_again(self, place: Place) -> None:
        """Ask a server that is out whether it is there. The next failure takes it out again, for longer."""
        try:
            if await self.check(place):
                place.is_out = place.gave_up = False
                place.failures = FAILURES - 1
            else:
                self.take_out(place)
        finally:
            del self._checks[place]


@dataclass(frozen=True, slots=True)
class Offer:
    """The models that a server lists, and the one that answers where none is named; nothing where it does not say."""

    model: str = ""
    listed: tuple[str, ...] = ()


async def offer_of(settings: Settings) -> Offer:
    """Return what the first server of these settings offers, asked with the key that its pages would be sent with.

    Nothing where it cannot be asked: the engine asks again when it opens, and then says what is wrong.
    """
    try:
        addresses = addresses_of(settings.base_url, os.environ)
        url = normalize_base_url(addresses.urls[0])
        key = key_for(addresses, settings.api_key_env, os.environ)
    except (LoupeError, ValueError, IndexError):
        return Offer()
    headers = {} if key == NO_KEY else {"Authorization": f"Bearer {key}"}
    try:
        async with open_client(headers=headers) as session:
            endpoint = await probe(session, url)
            if endpoint is None:
                return Offer()
            server = await identify(session, endpoint)
    except LoupeError:
        return Offer()
    listed = tuple(endpoint.model_ids)
    try:
        return Offer(choose_model(endpoint, server), listed)
    except LoupeError:
        return Offer("", listed)
