"""`loupe compress --dry-run` against the reference program's token counts, from headers of images alone."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from loupe.features.compress.measure import CompressionPage, measure
from tests.support.shared import cases


def png_header(path: Path, width: int, height: int, *, orientation: int = 1) -> Path:
    """A PNG whose pixels are missing: enough to know its size, not enough to be decoded."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", b"")
    )
    return path


@pytest.mark.parametrize("case", cases("oracles/deepseek_tokens/tokens.jsonl"), ids=lambda case: case["id"])
def test_a_dry_run_counts_as_the_reference_program_from_the_header_alone(case: dict[str, Any], tmp_path: Path) -> None:
    page = CompressionPage(image=png_header(tmp_path / "page.png", **case["input"]), name="page.png")
    for key, expected in case["expected"].items():
        mode, _, limit = key.partition("_max")
        (row,) = measure([page], [mode], max_tiles=int(limit or 9))
        assert row.error == ""
        assert [row.vision_tokens, row.vision_tokens_nominal, row.vision_tokens_sequence] == [
            expected["valid_tokens"],
            expected["nominal_tokens"],
            expected["sequence_tokens"],
        ]
        assert list(row.tiles or (1, 1)) == expected["tiles_wh"]
