"""Generated pages written as a folder of one's own, drawn by several processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from loupe.benchmarks.synth.choosing import Choice, chosen_pages, sample_of
from loupe.benchmarks.synth.own_folder import PAGES, new_folder, write_clean, write_records
from loupe.files.whole_folder import whole_folder
from loupe.inference.drawer import Drawer

#: Pages from one line of progress to the next.
_STEP = 50


async def write_generated(path: Path, choice: Choice, say: Callable[[str], None]) -> int:
    """Write the folder, whole or not at all; returns how many pages it has.

    Raises UsageError if something lies there, if another process writes it, or for a page that cannot be typeset.
    """
    samples = []
    with whole_folder(new_folder(path)) as folder:
        made = (sample_of(page, choice, folder.path / PAGES, named=True) for page in chosen_pages(choice))
        async with Drawer("synth") as drawer:
            async for sample in drawer.drawn(made):
                write_clean(folder, sample)
                samples.append(sample)
                if len(samples) % _STEP == 0:
                    say(f"{len(samples):,} pages")
        write_records(folder, samples, choice)
    return len(samples)
