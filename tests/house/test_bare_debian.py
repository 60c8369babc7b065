"""script/test-bare: nothing of this machine is in the bare system, and its clean-up takes nothing from this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "script" / "test-bare"
#: Stands in for the program that makes a Debian: this one is empty, so nothing can be run in it.
DEBOOTSTRAP = """#!/bin/sh
for last; do :; done
mkdir -p "$last/proc" "$last/dev" "$last/etc/ssl/certs" "$last/etc/dpkg/dpkg.cfg.d" "$last/etc/apt/apt.conf.d"
"""
#: In mounts of its own, shared among themselves as systemd shares those of a host.
SHARED = 'mount --make-rshared / && ! "$0" bookworm && mountpoint /dev/pts'


def _can_mount() -> bool:
    words = ["unshare", "--mount", "--propagation", "private", "mountpoint", "-q", "/dev/pts"]
    return os.getuid() == 0 and shutil.which("unshare") is not None and subprocess.run(words).returncode == 0


@pytest.mark.skipif(not _can_mount(), reason="needs root, mount namespaces and /dev/pts")
def test_its_clean_up_leaves_dev_pts_and_it_takes_no_folder_of_the_host_along(tmp_path: Path) -> None:
    (tmp_path / "debootstrap").write_text(DEBOOTSTRAP)
    (tmp_path / "debootstrap").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": tempfile.mkdtemp(dir=tmp_path)}
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SHARED, str(SCRIPT)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.stderr.rstrip().endswith("bookworm: FAILED") and "chroot: failed to run" in done.stderr
    assert (done.stdout, done.returncode) == ("/dev/pts is a mountpoint\n", 0)
    assert not list(Path(environment["TMPDIR"]).iterdir())


def test_it_mounts_nothing_that_only_some_machines_have() -> None:
    assert "../shared" not in SCRIPT.read_text()
