"""Pack cases of the official evaluators for the repository: tests/oracles/NAME/cases.tar.xz, one archive per folder.

usage: python script/pack_oracles.py NAME...         pack these folders of ../shared/oracles, new ones or again
       python script/pack_oracles.py                 again all that the repository has

The same cases give the same bytes. A README comes along where the repository has none. Cases made of other people's
pages, tables or answers stay out: see THIRD_PARTY and is_third_party.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import sys
import tarfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY.parent / "shared" / "oracles"
TARGET = REPOSITORY / "tests" / "oracles"
#: Files and folders made of published data sets. Tests that need them read ../shared.
THIRD_PARTY = {
    "archives": {"real", "real.jsonl"},  # test files of dinglehopper
    "nid": {"opendataloader_real.jsonl"},  # pages of DP-Bench
    "ocrbench": {"runs.jsonl"},  # answers derived from OCRBench
    "olmocr_bench": {"e2e"},  # the sample pages of olmOCR-Bench, read by several programs
    "omnidocbench": {"pages.jsonl", "runs.jsonl"},  # nine pages of OmniDocBench
    "teds": {"pubtabnet_cases.jsonl", "ibm_sample_scores.json"},  # tables of PubTabNet
}
LARGEST = 1_000_000


def is_third_party(folder: str, line: bytes) -> bool:
    """Whether one case of a file that is otherwise ours uses somebody else's page."""
    return folder == "olmocr_bench" and json.loads(line)["id"].startswith("sample-")


def contents(folder: str) -> dict[str, bytes]:
    """What is packed of a folder, by name within it."""
    found = {}
    for path in sorted(path for path in (SOURCE / folder).rglob("*") if path.is_file()):
        name = path.relative_to(SOURCE / folder)
        if name.name == "README.md" or name.parts[0] in THIRD_PARTY.get(folder, ()):
            continue
        lines = path.read_bytes().splitlines(keepends=True)
        ours = path.suffix != ".jsonl" or not any(is_third_party(folder, line) for line in lines if line.strip())
        kept = lines if ours else [line for line in lines if line.strip() and not is_third_party(folder, line)]
        found[name.as_posix()] = b"".join(kept)
    return found


def packed(files: dict[str, bytes]) -> bytes:
    """A tar of the files, compressed; nothing in it depends on the machine or the time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=9 | lzma.PRESET_EXTREME, format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def pack(folder: str) -> str:
    """Write one archive; the line that says what became of it. Raises SystemExit where it cannot be had."""
    if not (SOURCE / folder).is_dir():
        sys.exit(f"pack_oracles: no folder {folder!r} in {SOURCE}")
    files = contents(folder)
    data = packed(files)
    if len(data) > LARGEST:
        sys.exit(f"pack_oracles: {folder} has {len(data):,} bytes packed, and {LARGEST:,} is the limit")
    target = TARGET / folder
    target.mkdir(parents=True, exist_ok=True)
    changed = not (target / "cases.tar.xz").exists() or (target / "cases.tar.xz").read_bytes() != data
    (target / "cases.tar.xz").write_bytes(data)
    readme = target / "README.md"
    if not readme.exists():
        readme.write_bytes((SOURCE / folder / "README.md").read_bytes())
        print(f"{readme}: copied; edit it, it is read on its own", file=sys.stderr)
    return f"{folder}: {len(files)} files, {len(data):,} bytes, {'written' if changed else 'unchanged'}"


def main() -> None:
    """Pack the folders named, or those that are there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    for name in parser.parse_args().names or sorted(path.parent.name for path in TARGET.glob("*/cases.tar.xz")):
        print(pack(name))


if __name__ == "__main__":
    main()
