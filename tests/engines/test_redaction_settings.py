"""Keys in settings: none of them in what is stored, digested, compared or shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loupe.engines.registry import changed_settings, load_profile
from loupe.errors import ProfileError

KEY = "sk-secret-1234567890"


@pytest.mark.parametrize(
    ("engine", "keys"),
    [
        ("paddleocr-vl-sdk", {"options": {"vl_rec_api_key": KEY, "nested": [{"headers": {"Authorization": KEY}}]}}),
        ("paddleocr-vl-sdk", {"options": {"vl_rec_server_url": f"https://me:{KEY}@host/v1?api_key={KEY}"}}),
        ("glm-ocr-sdk", {"config": {"pipeline": {"ocr_api": {"apiKey": KEY, "headers": {"cookie": [KEY]}}}}}),
        ("deepseek-ocr-sdk", {"vllm": {"hf_token": KEY}}),
        ("glm-ocr", {"extra_body": {"api_key": KEY}}),
        ("glm-ocr", {"base_url": f"host:1/v1?api_key={KEY}", "servers": {"vllm": {"env": {"HF_TOKEN": KEY}}}}),
        ("command", {"command": ["ocr", "--api-key", KEY, f"--hf-token={KEY}"]}),
    ],
)
def test_keys_stand_nowhere(engine: str, keys: dict[str, Any]) -> None:
    base = {"command": ["ocr"]} if engine == "command" else {}
    other = json.loads(json.dumps(keys).replace(KEY, "sk-another-0987654321"))
    _, profile = load_profile(engine, keys)
    _, plain = load_profile(engine, base)
    seen = [profile.stored(), profile.defining(), profile.signature(), changed_settings(profile, plain)]
    assert KEY not in json.dumps(seen, default=str)
    _, another = load_profile(engine, other)
    assert another.defining() == profile.defining() and another.signature() == profile.signature()


def test_what_is_no_key_is_kept() -> None:
    body = {"eos_token": "</s>", "max_tokens_field": "x", "stop": ["--key"], "use_key": True, "key_points": "a"}
    _, profile = load_profile("glm-ocr", {"extra_body": body})
    assert profile.stored()["extra_body"] == body == profile.defining()["extra_body"]


@pytest.mark.parametrize("url", [f"https://me:{KEY}@host/v1", f"https://host/v1?api_key={KEY}"])
def test_a_packages_address_with_a_key_is_refused_without_repeating_it(url: str) -> None:
    for engine in ("glm-ocr-sdk", "paddleocr-vl-sdk", "mineru"):
        with pytest.raises(ProfileError, match="base_url holds a") as raised:
            load_profile(engine, {"base_url": url})
        assert KEY not in raised.value.message


def test_signatures_of_packages_say_how_the_numbers_were_made() -> None:
    tiers = [load_profile("mineru", keys)[1] for keys in ({"tier": "flash"}, {"tier": "advanced"}, {"method": "ocr"})]
    lines = [tier.signature() for tier in tiers]
    assert len({tuple(line.items()) for line in lines}) == 3
    assert (lines[0]["tier"], lines[2]["method"], lines[0]["img"]) == ("flash", "ocr", "pdf+dpi200")
    # Other settings are in the digest of all that define an answer (`set:`), if they can change one.
    ways: list[dict[str, Any]] = [{}, {"options": {"layout_threshold": 0.5}}, {"layout_threshold": 0.5}]
    ways += [{"region_workers": 4}, {"base_url": "http://127.0.0.1:1"}, {"max_tokens": 9}]
    usual, *others, workers, server, short = (load_profile("paddleocr-vl-sdk", each)[1].defining() for each in ways)
    assert usual == workers == server and others[0] == others[1] != usual != short
