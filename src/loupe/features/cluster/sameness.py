"""Compare a node with the driver: another release of Loupe, or of what touches pages, may give other numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from loupe.runs.info import PIXEL_PACKAGES, package_versions

#: What every node must have as the driver has it, and what one that scores must have, too.
_ENGINES = frozenset({"loupe", *PIXEL_PACKAGES})


def versions() -> dict[str, str]:
    """Return the versions that are compared, of the machine that this runs on."""
    found = package_versions()
    # Patch releases of Python change no number.
    return found | {"python": ".".join(found["python"].split(".")[:2])}


def differences(driver: Mapping[str, str], *, scoring: bool = False) -> str:
    """Say what this machine has otherwise than the driver; "" if that is nothing that counts."""
    return differing(driver, versions(), driver.keys() if scoring else _ENGINES)


def differing(driver: Mapping[str, str], node: Mapping[str, str], names: Collection[str]) -> str:
    """In words, which of `names` differ."""
    return ", ".join(
        f"{name} {node.get(name) or 'is missing'} (here {driver.get(name) or 'missing'})"
        for name in sorted(names)
        if node.get(name, "") != driver.get(name, "")
    )
