"""Blobs on disk: kept between caches and threads, and a cache that cannot be used is only an empty one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.msgpack import Decoder

from loupe.metrics import blob_cache
from loupe.metrics.blob_cache import BlobCache
from loupe.metrics.cdm.drawing.rendering import RenderCache, Rendering


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_what_is_kept_is_found_by_another_cache_and_nothing_else(tmp_path: Path) -> None:
    blobs = {key(number): bytes([number % 256]) * number for number in range(1_200)}
    with closing(BlobCache(tmp_path / "below" / "blobs")) as cache:
        cache.keep(blobs)
        cache.keep({key(3): b"new"})
    with closing(BlobCache(tmp_path / "below" / "blobs")) as cache:
        assert cache.find([key(number) for number in range(2_000)]) == blobs | {key(3): b"new"}


def test_threads_share_a_cache(tmp_path: Path) -> None:
    with closing(BlobCache(tmp_path / "blobs")) as cache, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: cache.keep({key(number): b"x"}), range(200)))
        found = threads.map(lambda number: cache.find([key(number)]), range(200))
        assert all(len(one) == 1 for one in found)


def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_bytes(b"no database" * 1_000)
    with closing(BlobCache(tmp_path / "blobs")) as cache:
        assert cache.find([key(1)]) == {}
        cache.keep({key(1): b"x"})
        assert cache.find([key(1)]) == {key(1): b"x"}


def test_a_file_that_has_grown_too_large_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(BlobCache(tmp_path / "blobs")) as cache:
        cache.keep({key(1): b"x" * 50_000})
    monkeypatch.setattr(blob_cache, "_LARGEST_FILE", 40_000)
    with closing(BlobCache(tmp_path / "blobs")) as cache:
        assert cache.find([key(1)]) == {}


def test_where_nothing_can_be_kept_nothing_is_found(tmp_path: Path) -> None:
    cache = BlobCache(Path(os.devnull) / "blobs")
    cache.keep({key(1): b"x"})
    assert cache.find([key(1)]) == {}


def test_renderings_of_formulas_outlive_their_cache_even_a_damaged_one(tmp_path: Path) -> None:
    drawn = Rendering(failure="refused")
    (tmp_path / "cdm.sqlite").write_bytes(b"no database" * 1_000)
    with closing(RenderCache(tmp_path)) as cache:
        cache.put("kind", {"x": drawn})
    with closing(RenderCache(tmp_path)) as cache:
        assert cache.get("kind", ["x", "y"], Decoder(Rendering)) == [drawn, None]
