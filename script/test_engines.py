"""Try engines in environments of their own with the real packages: install, start, read, remove. Run before a release.

`python -m script.test_engines [NAME …]` prints a row of a Markdown table for each; without names, for every profile
that reads without weights. Those that need some (name them, or `--heavy`: gigabytes each) must say that they are
missing. The others read the sample pages; environments are removed again unless `--keep`. Exit code 1: one did not do
what it should.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.support.cloud_services import cloud_service, google_document, textract_blocks

from loupe.data.toml import as_toml
from loupe.engines.environments.making import make
from loupe.engines.environments.places import Settings, wanted
from loupe.engines.registry import load_profile, packaged_profiles
from loupe.quantities import size

PROFILES = [path for path in packaged_profiles() if 'kind = "environment"\n' in path.read_text()]
PAGE = Path(__file__).parents[1] / "src" / "loupe" / "benchmarks" / "sample_pages_data" / "receipt.jpg"
_STARTS = re.compile(r": starts in ([\d.]+) s")


def main(words: list[str]) -> int:
    """Try each engine; the number of those that failed, at most 1."""
    names = [word for word in words if not word.startswith("-")]
    if not names:
        names = [path.stem for path in PROFILES if "--heavy" in words or "unproven" not in path.read_text()]
    print("| engine | to download | on disk | made in | starts in | sample pages |")
    print("|---|---|---|---|---|---|", flush=True)
    return 1 - min(row(name, keep="--keep" in words) for name in names)


def row(name: str, *, keep: bool) -> bool:
    """Print what one engine did. Whether it is what its profile says."""
    profile = load_profile(name)[1]
    assert isinstance(profile, Settings)
    made = make(profile)
    said = loupe("engine", "install", name).stderr
    starts = _STARTS.search(said)
    told = missing[1] if (missing := re.search(r"does not start yet: (.+)", said)) else ""
    if profile.sends_to:
        starts, outcome = None, ask_stand_in(name, profile)
    else:
        outcome = read(name) if starts else told or said.strip().splitlines()[-1]
    download = size(wanted(profile).download)
    start = f"{starts[1]} s" if starts else "–"
    print(f"| {name} | {download} | {size(made.size)} | {made.seconds:g} s | {start} | {outcome} |", flush=True)
    if not keep:
        loupe("engine", "remove", name)
    return bool(starts) or (bool(told and profile.unproven) and not outcome.startswith("error"))


def read(name: str) -> str:
    """How the sample pages end with an engine, and the seconds of a page that it read."""
    with tempfile.TemporaryDirectory() as folder:
        done = loupe("run", "sample_pages", "-e", name, "--runs", folder)
        files = list(Path(folder).rglob("predictions.jsonl"))
        if not files:
            return done.stderr.strip().splitlines()[-1]
        pages = [json.loads(line) for line in files[0].read_text().splitlines()]
    counts = Counter(page["class"] for page in pages)
    seconds = sorted(page["seconds"] for page in pages if page["class"] != "rejected")
    middle = f", {seconds[len(seconds) // 2]:.2f} s a page" if seconds else ""
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()) + middle


def ask_stand_in(name: str, profile: Settings) -> str:
    """What a service's SDK reads of a stand-in for the service on this machine."""
    answers = {"blocks": {"Blocks": textract_blocks()}, "layout": google_document(True), "text": google_document(False)}
    kinds = ["blocks"] if name.startswith("textract") else ["text", "layout"]
    told = []
    for kind in kinds:
        with cloud_service(answers[kind]) as service:
            options = {**profile.options, "endpoint": service.url}
            if "processor" in options:
                options["processor"] = "projects/p/locations/eu/processors/x"
            set_to = f"options={as_toml(options)}"
            done = loupe("engine", "test", name, "--image", str(PAGE), "-o", set_to)
            sent = [page == PAGE.read_bytes() for page in service.pages]
        lines = done.stderr.strip().splitlines()
        told.append(
            f"{kind}: {len(done.stdout.strip())} characters" if sent == [True] and not done.returncode else lines[-1]
        )
    return "; ".join(told)


def loupe(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run([sys.executable, "-m", "loupe", *words], capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
