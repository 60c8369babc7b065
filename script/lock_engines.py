"""Lock the environments of engines: the exact packages of each, with the digests of the files that may be installed.

`script/pin engines [NAME …]` runs it. It takes `packages` from the profiles, resolves them with uv for Linux and
macOS and Python 3.11 to 3.14, and writes `src/loupe/engines/environments/locks/NAME.txt`: no index, no address, and
digests of those files only that can be installed there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.utils import parse_wheel_filename

ENGINES = Path(__file__).parents[1] / "src" / "loupe" / "engines"
LOCKS = ENGINES / "environments" / "locks"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
#: (sys_platform, platform_machine, how the tags of wheels name it)
PLATFORMS = (
    ("linux", "x86_64", ("manylinux", "linux_x86_64")),
    ("linux", "aarch64", ("manylinux", "linux_aarch64")),
    ("darwin", "arm64", ("macosx", "")),
)
#: A lock larger than this is worth a look, in bytes.
LARGE = 500_000


def main(names: list[str]) -> None:
    """Write the locks that are named, or all."""
    wanted = dict(environments())
    for name in names or sorted(wanted):
        packages, python = wanted[name]
        lock = tomllib.loads(_resolved(packages, python))
        text = "".join(_lines(lock["packages"], python))
        path = LOCKS / f"{name}.txt"
        path.write_text(text)
        large = " (large)" if len(text) > LARGE else ""
        size = _download(lock["packages"]) // 10**6
        count = sum(1 for line in text.splitlines() if line[0] not in "# ")
        print(f"{name}: {count} packages, {len(text):,} bytes{large}, {size:,} MB to download")


def environments() -> Iterator[tuple[str, tuple[list[str], str]]]:
    """Each environment that a profile of the package names, with its packages and the Pythons that it runs on."""
    for path in sorted((ENGINES / "profiles").rglob("*.toml")):
        profile = tomllib.loads(path.read_text())
        if profile["kind"] == "environment":
            yield profile["environment"], (profile["packages"], profile.get("python", ">=3.11"))


def _resolved(packages: list[str], python: str) -> str:
    """The lock as uv writes it, with sizes; without Linux on ARM, or macOS, if a package has nothing for it."""
    fewer = [[each for each in PLATFORMS if left_out not in each] for left_out in ("aarch64", "darwin")]
    for platforms in (PLATFORMS, *fewer):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "pyproject.toml").write_text(_project(packages, python, platforms))
            command = [
                sys.executable,
                "-m",
                "uv",
                "pip",
                "compile",
                "--quiet",
                "--universal",
                "--python-version",
                "3.11",
            ]
            words = [*command, "--format", "pylock.toml", "pyproject.toml", "-o", "pylock.toml"]
            done = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True)
            if done.returncode == 0:
                return (folder / "pylock.toml").read_text()
    raise SystemExit(done.stderr)


def _project(packages: list[str], python: str, platforms: Sequence[tuple[str, str, Any]]) -> str:
    environments = [
        f"sys_platform == '{system}' and platform_machine == '{machine}'" for system, machine, _ in platforms
    ]
    requires = python if "<" in python else f"{python},<3.15"
    return (
        f"[project]\nname = 'engine'\nversion = '0'\nrequires-python = '{requires}'\n"
        f"dependencies = {packages!r}\n[tool.uv]\nenvironments = {environments!r}\n"
    )


def _lines(packages: list[dict[str, Any]], python: str) -> Iterator[str]:
    yield f"# Made by script/pin engines. To download (Linux x86-64, Python 3.11): {_download(packages)} bytes\n"
    for package in packages:
        files = _files(package)
        if not files:
            continue
        marker = package.get("marker", "")
        condition = f" ; {marker}" if marker and not _always(marker, python) else ""
        yield f"{package['name']}=={package['version']}{condition}"
        yield "".join(f" \\\n    --hash=sha256:{file['hashes']['sha256']}" for file in files) + "\n"


def _targets() -> Iterator[tuple[dict[str, str], tuple[str, str]]]:
    for version in PYTHONS:
        for system, machine, tags in PLATFORMS:
            yield (
                {
                    "sys_platform": system,
                    "platform_machine": machine,
                    "platform_system": system.title(),
                    "python_version": version,
                    "python_full_version": f"{version}.1",
                    "platform_python_implementation": "CPython",
                    "implementation_name": "cpython",
                    "os_name": "posix",
                },
                tags,
            )


def _always(marker: str, python: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return all(
        Marker(marker).evaluate(target)
        for target, _ in _targets()
        if SpecifierSet(python).contains(target["python_version"])
    )


def _files(package: dict[str, Any]) -> list[dict[str, Any]]:
    """The files of a package that can be installed somewhere: wheels that fit, else its source."""
    marker = Marker(package["marker"]) if package.get("marker") else None
    targets = [tags for target, tags in _targets() if marker is None or marker.evaluate(target)]
    if not targets:
        return []
    wheels = [wheel for wheel in package.get("wheels", []) if _fits(_name(wheel), targets)]
    needs_source = any(not any(_fits(_name(wheel), [tags]) for wheel in wheels) for tags in targets)
    source = [package["sdist"]] if needs_source and "sdist" in package else []
    return wheels + source


def _name(file: dict[str, Any]) -> str:
    return str(file.get("name") or file["url"].rpartition("/")[2])


def _fits(name: str, targets: list[tuple[str, str]]) -> bool:
    for tag in parse_wheel_filename(name)[3]:
        interpreter = tag.interpreter.removeprefix("cp").removeprefix("py")
        if tag.interpreter[:2] not in ("cp", "py") or tag.abi.endswith("t") or interpreter == "2":
            continue
        if tag.abi == tag.interpreter and interpreter not in ("311", "312", "313", "314"):
            continue
        if tag.platform == "any" or any(_on(tag.platform, target) for target in targets):
            return True
    return False


def _on(platform: str, target: tuple[str, str]) -> bool:
    if target[0] == "macosx":
        return platform.startswith("macosx") and platform.endswith(("arm64", "universal2"))
    return platform.startswith(target) and platform.endswith(target[1].removeprefix("linux_"))


def _download(packages: list[dict[str, Any]]) -> int:
    """Bytes of the files that Python 3.11 takes on Linux x86-64."""
    target, tags = next(_targets())
    total = 0
    for package in packages:
        if package.get("marker") and not Marker(package["marker"]).evaluate(target):
            continue
        wheels = [w for w in package.get("wheels", []) if _fits(_name(w), [tags])]
        fitting = [w for w in wheels if _for_311(_name(w))] or ([package["sdist"]] if "sdist" in package else [])
        total += max((file.get("size", 0) for file in fitting), default=0)
    return total


def _for_311(name: str) -> bool:
    return any(tag.abi in ("cp311", "abi3", "none") for tag in parse_wheel_filename(name)[3])


if __name__ == "__main__":
    main(sys.argv[1:])
