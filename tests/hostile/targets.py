"""Every kind of foreign files that is attacked, by name."""

from __future__ import annotations

from tests.hostile import run_folders

TARGETS = {target.name: target for target in (run_folders.TARGET,)}
