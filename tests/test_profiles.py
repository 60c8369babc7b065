"""Engine profiles: what a person can get wrong in a TOML file, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from loupe.engines.registry import load_profile, profile_names
from loupe.errors import ProfileError, UsageError
from tests.command_line import complaint, loupe


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("concurrency = 0", "concurrency = 0: must be at least 1"),
        ("concurrency = 1.5", "concurrency = 1.5: expected `int | null`, got `float`"),
        ("timeout = 0", "timeout = 0: must be above 0 seconds, and an end"),
        ("timeout = -1.0", "timeout = -1: must be above 0 seconds, and an end"),
        ("timeout = nan", "timeout = nan: must be above 0 seconds, and an end"),
        ("timeout = inf", "timeout = inf: must be above 0 seconds, and an end"),
        ("retries = -1", "retries = -1: must be at least 0"),
        ("timeot = 3.0", "unknown key 'timeot'; did you mean 'timeout'?"),
    ],
)
@pytest.mark.parametrize("kind", ["tesseract", "pdf_text"])
def test_a_wrong_setting_is_named_with_its_file(kind: str, setting: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'kind = "{kind}"\n{setting}\n')
    with pytest.raises(ProfileError) as error:
        load_profile(str(file))
    assert error.value.message == f"{file}: {message}"


@pytest.mark.parametrize("setting", ["max_tokens = 0", "concurrency = 0", "timeout = 0", "retries = -1"])
def test_a_servers_numbers_are_checked_too(setting: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'kind = "openai"\n{setting}\n')
    with pytest.raises(ProfileError) as error:
        load_profile(str(file))
    assert error.value.message.startswith(f"{file}: {setting.split(' =')[0]}")


def test_an_engine_that_is_no_table_is_a_mistake_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loupe.toml").write_text('[engines]\nfoo = "bar"\n')
    with pytest.raises(ProfileError, match=r"^loupe.toml \[engines.foo\]: not a table"):
        load_profile("foo")


def test_engines_that_are_no_table_are_a_mistake_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loupe.toml").write_text('engines = "foo"\n')
    with pytest.raises(ProfileError, match=r"^loupe.toml \[engines\]: not a table"):
        profile_names()


def test_an_unusable_profile_does_not_hide_the_other_engines(tmp_path: Path) -> None:
    (tmp_path / "loupe.toml").write_text('[engines]\nfoo = "bar"\n[engines.slow]\nkind = "pdf_text"\ntimeout = 0\n')
    done = loupe("engine", "list", "--plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {line.split("\t")[0]: line for line in done.stdout.splitlines()}
    assert "unusable: loupe.toml [engines.foo]: not a table" in rows["foo"]
    assert "unusable: loupe.toml [engines.slow]: timeout = 0: " in rows["slow"] and "tesseract" in rows
    assert complaint(loupe("engine", "show", "foo", cwd=tmp_path))[0].startswith(
        "loupe.toml [engines.foo]: not a table"
    )


def test_a_mistyped_engine_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="no engine 'tesserakt'; did you mean 'tesseract'"):
        load_profile("tesserakt")
