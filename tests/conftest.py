"""Settings of all tests: hypothesis without deadlines, because two busy cores make any deadline a coin toss."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from loupe.data import trust
from loupe.data.user_folders import cache_folder
from tests.support.command_line import CACHE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Workers get no working folder: the functions of tests are found as those of an installed package are.
sys.path.append(str(Path(__file__).parents[1]))

# Started in the background or by nohup, signals are ignored here, and every program that the tests start inherits that.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        with contextlib.suppress(ValueError):
            signal.signal(_number, _handler)

settings.register_profile("loupe", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loupe")


@pytest.fixture(autouse=True, scope="session")
def keep_home_clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests remember, sign and cache in folders of theirs; of the user's cache they see KaTeX, as a link."""
    folder = tmp_path_factory.mktemp("trust")
    cache = tmp_path_factory.mktemp(CACHE)
    (cache / "loupe").mkdir()
    for katex in cache_folder().glob("katex-*"):
        (cache / "loupe" / katex.name).symlink_to(katex)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trust, "_folder", lambda: folder)
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of one file; Playwright's event loop must not outlive them."""
    from tests.support.report_browser import chromium

    with chromium() as found:
        yield found
