"""Pages that get worse in twenty ways, each at five physical severities: docs/synth-degradations.md."""

from loupe.features.synth.degrade.catalogue import (
    DEGRADATIONS,
    SEVERITIES,
    VERSION,
    Degradation,
    degrade,
    digest,
    versions,
)

__all__ = ["DEGRADATIONS", "SEVERITIES", "VERSION", "Degradation", "degrade", "digest", "versions"]
