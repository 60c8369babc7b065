"""Engine profiles: what a person can get wrong in a TOML file, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from loupe.engines.registry import load_profile, profile_names
from loupe.errors import ProfileError, UsageError
from tests.support.command_line import complaint, loupe, trusted


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("concurrency = 0", "concurrency = 0: must be at least 1"),
        ("concurrency = 1.5", "concurrency = 1.5: must be a whole number, not a fraction"),
        ('concurrency = "4"', 'concurrency = "4": must be a whole number, not text'),
        ("adapters = 'strip'", 'adapters = "strip": must be a list, not text'),
        ("prompts = {table = 3}", "prompts[...]: must be text, not a whole number"),
        ("timeout = 0", "timeout = 0: must be above 0 seconds and finite"),
        ("timeout = -1.0", "timeout = -1: must be above 0 seconds and finite"),
        ("timeout = nan", "timeout = nan: must be above 0 seconds and finite"),
        ("timeout = inf", "timeout = inf: must be above 0 seconds and finite"),
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


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ('kind = "tesseract"\npsm = "x"', 'psm = "x": must be a whole number, not text'),
        ('kind = "tesseract"\npsm = 14', "psm = 14: Tesseract has the modes 0 to 13"),
        ('kind = "python"', "no `function`"),
        ('kind = "openai"\ntemperature = []', "temperature = []: must be a number or text, not a list"),
        ('kind = "openai"\nimage = "fit"', "image rule 'fit': use none, fit2048, longest(1288) or "),
    ],
)
def test_a_wrong_setting_of_a_kind_is_said_in_plain_words(profile: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(profile + "\n")
    with pytest.raises(ProfileError) as error:
        load_profile(str(file))
    assert error.value.message.startswith(f"{file}: {message}")


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
    trusted(tmp_path / "loupe.toml")
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
