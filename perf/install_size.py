"""What an installation of Loupe brings: packages, megabytes, seconds; measured in a fresh environment.

Run: `python perf/install_size.py [--extra rapidocr] [--uv]`. The environment is made with venv and pip without its
cache (or with uv), outside the checkout; there the installed `loupe` then repeats official cases of tables and of
pages, so what is measured is known to work. Budget of the core: 35 packages, 200 MB (exit code 1 if it is exceeded).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES, MEGABYTES = 35, 200
#: What venv itself puts there.
TOOLS = {"pip", "setuptools"}


def install(folder: Path, extra: str, *, uv: bool) -> float:
    """Make the environment and install the checkout into it; returns the seconds of the installation alone."""
    what = f"{ROOT}[{extra}]" if extra else str(ROOT)
    if uv:
        subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, folder], check=True)
        command = ["uv", "pip", "install", "--quiet", "--no-cache", "--python", str(folder / "bin/python"), what]
    else:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        command = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--no-cache-dir", what]
    started = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def measure(folder: Path) -> tuple[list[str], float]:
    """The packages installed, and the size of all their files in MB (10⁶ bytes), compiled ones included."""
    site = next(folder.glob("lib/python*/site-packages"))
    found = [each for each in distributions(path=[str(site)]) if each.name not in TOOLS]
    files = {Path(str(file.locate())) for each in found for file in each.files or ()}
    return sorted(each.name for each in found), sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def try_it(folder: Path) -> str:
    """Let the installed command score the official cases that come with it; returns what it says of itself."""
    loupe = str(folder.resolve() / "bin/loupe")
    version = subprocess.run([loupe, "--version"], cwd=folder, capture_output=True, text=True, check=True).stdout
    subprocess.run([loupe, "verify", "pubtabnet", "dp_bench"], cwd=folder, capture_output=True, check=True)
    return version.strip()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extra", default="", help="an extra to install too")
    parser.add_argument("--uv", action="store_true", help="install with uv, not with pip")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loupe-install-") as name:
        folder = Path(name) / "env"
        seconds = install(folder, options.extra, uv=options.uv)
        packages, megabytes = measure(folder)
        version = try_it(folder)
    extra = f"[{options.extra}]" if options.extra else ""
    print(f"{version}{extra}: {len(packages)} packages, {megabytes:.0f} MB, {seconds:.0f} s")
    print(" ".join(packages))
    return int(not options.extra and (len(packages) > PACKAGES or megabytes > MEGABYTES))


if __name__ == "__main__":
    sys.exit(main())
