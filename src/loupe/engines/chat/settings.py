"""The keys of an `openai` profile (docs/engines/openai.md)."""

from __future__ import annotations

import os
from typing import Any, Literal

import msgspec

from loupe.engines.chat.discovery import address, addresses_of, check_addresses, shown
from loupe.engines.chat.endings import AnswerFrom
from loupe.engines.pages.page_images import parse_rule
from loupe.engines.registry import Profile
from loupe.engines.shared.hosts import hosts_beyond
from loupe.engines.shared.redaction import redacted
from loupe.runs.info import digest_of

#: Sampling parameters that are sent if they are set.
SAMPLING = ("top_p", "top_k", "min_p", "repetition_penalty", "seed")
#: Keys that say which server is to be started, and how (`loupe.servers`).
_STARTED_SERVER = frozenset(
    {"serve", "servers", "server_args", "server_port", "server_program", "gpus", "pass_env", "startup_timeout"}
)


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of an `openai` profile; see docs/engines/openai.md. The API key itself is never one of them."""

    base_url: str | list[str] = ""
    model: str = ""
    api_key_env: str = ""
    image: str = "fit2048"
    max_tokens: int | None = None
    max_tokens_field: str = ""
    retry_truncated: int | None = None
    retry_temperatures: list[float] = msgspec.field(default_factory=list)
    retry_if: list[Literal["truncated", "repeated"]] = msgspec.field(default_factory=list)
    temperature: float | Literal["server"] = 0.0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: list[str] = msgspec.field(default_factory=list)
    extra_body: dict[str, Any] = msgspec.field(default_factory=dict)
    system: str | None = None
    unproven: str = ""
    content_order: Literal["image_first", "text_first"] = "image_first"
    answer_from: AnswerFrom = "content"
    connect_timeout: float = 30.0
    serve: str = ""
    servers: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    server_args: list[str] = msgspec.field(default_factory=list)
    server_port: int | Literal["auto"] | None = None
    server_program: str = ""
    gpus: str = ""
    pass_env: list[str] = msgspec.field(default_factory=list)
    startup_timeout: float = 1200.0
    concurrency: int | Literal["auto"] | None = "auto"
    adapters: list[str] = msgspec.field(default_factory=lambda: ["newlines", "think", "end_tokens", "unfence", "strip"])

    def __post_init__(self) -> None:
        parse_rule(self.image)
        check_addresses(self.base_urls)
        for key in ("timeout", "connect_timeout", "startup_timeout", "concurrency", "max_tokens", "retry_truncated"):
            value = getattr(self, key)
            if isinstance(value, (int, float)) and value <= 0:
                raise ValueError(f"{key} = {value}: must be above 0")
        if self.retry_temperatures and self.retry_truncated is not None:
            raise ValueError("retry_truncated and retry_temperatures: one of the two")
        if self.retry_if and not self.retry_temperatures:
            raise ValueError("retry_if says when retry_temperatures are used, and there are none")
        if wrong := [each for each in self.retry_temperatures if not 0 <= each <= 2]:
            raise ValueError(f"retry_temperatures: {wrong[0]:g} is not from 0 to 2")

    @property
    def base_urls(self) -> list[str]:
        """The base URLs as written, without empty ones."""
        written = [self.base_url] if isinstance(self.base_url, str) else self.base_url
        return [url for url in written if url.strip()]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Also those that a variable names."""
        return hosts_beyond(() if self.serve else addresses_of(self.base_url, os.environ).urls)

    def signature(self) -> dict[str, str]:
        """Image rule, token limit (if it is not the benchmark's), temperature, and whatever else steers sampling.

        What is too long for a signature (further keys of the body, a system prompt) stands there as a digest.
        """
        fixed = {"img": self.image.replace(" ", "")}
        if self.max_tokens is not None:
            fixed["max"] = str(self.max_tokens)
        if self.retry_truncated is not None:
            fixed["retry_max"] = str(self.retry_truncated)
        if self.retry_temperatures:
            fixed["retry_t"] = "-".join([*(f"{each:g}" for each in self.retry_temperatures), *self.retry_if])
        fixed["t"] = self.temperature if isinstance(self.temperature, str) else f"{self.temperature:g}"
        fixed |= {key: f"{getattr(self, key):g}" for key in SAMPLING if getattr(self, key) is not None}
        if self.content_order != "image_first":
            fixed["order"] = self.content_order
        if self.answer_from != "content":
            fixed["from"] = self.answer_from
        long = {"stop": self.stop or None, "system": self.system, "body": redacted(self.extra_body) or None}
        return fixed | {key: digest_of([value])[:8] for key, value in long.items() if value is not None}

    def defining(self) -> dict[str, Any]:
        """The settings that define answers, without a server's place and our patience; a server that we start says its
        own.
        """
        skipped = {"base_url", "api_key_env", "connect_timeout", *_STARTED_SERVER, "unproven"}
        if self.answer_from == "content":
            skipped.add("answer_from")  # runs of older versions do not have it
        return {key: value for key, value in super().defining().items() if key not in skipped}

    def stored(self) -> dict[str, Any]:
        """All settings but keys; an address may come without `http://`."""
        urls = self.base_url
        shorter = shown(address(urls)) if isinstance(urls, str) else [shown(address(url)) for url in urls]
        return {**super().stored(), "base_url": shorter}
