"""Options of a reading on the command line, as one record."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from loupe.files.default_places import RUNS


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `run` and `infer`, as click hands them over; `settings` are those of `-o` that engines have."""

    engine: tuple[str, ...] = ()
    engines: str = ""
    base_url: tuple[str, ...] = ()
    model: str | None = None
    serve: str | None = None
    size: str | None = None
    server_arg: tuple[str, ...] = ()
    server_port: int | str | None = None
    gpus: str | None = None
    startup_timeout: float | None = None
    concurrency: int | Literal["auto"] | None = None
    timeout: float | None = None
    retries: int | None = None
    max_tokens: int | None = None
    retry_truncated: int | None = None
    temperature: float | None = None
    image: str | None = None
    prompt: str | None = None
    prompt_file: Path | None = None
    limit: int | None = None
    sample: int | Literal["stratified"] | None = None
    seed: int | None = None
    repeats: int = 1
    data: Path | None = None
    download: bool = False
    option: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    runs: Path = RUNS
    name: str = ""
    fresh: bool = False
    redo: tuple[str, ...] = ()
    reuse: Path | None = None
    jobs: int | None = None
    allow_unverified: bool = False
    max_cost: float | None = None
    shared: bool = False
    on: str | None = None
    worker: dict[str, float] | None = None
    shared_data: bool = False
    yes: bool = False
