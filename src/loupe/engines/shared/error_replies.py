"""Recognise an answer that is nothing but the error of a service, as JSON: `{"error": "rate limit exceeded"}`.

Source: docs/own-data.md#formats-of-answers. Only a whole answer counts, of which no key says anything else, and which
stands in no code fence: a model that reads such JSON from a page usually fences it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loupe.engines.adapters.service_json import json_in

#: Errors are short. Longer JSON is read by nobody.
_LONGEST, _LONGEST_SAID = 20_000, 500
#: Keys of an error, in lower case without separators; the first that says something is quoted.
_ERRORS = ("error", "errors", "errormessage", "errormsg")
#: Words about a failure that fields of a document may have, too: they count if a code or a flag says that it is one.
_WORDS = ("message", "msg", "detail", "reason", "title")
#: Keys that say nothing about a page.
_TECHNICAL = frozenset(
    {"code", "status", "statuscode", "httpstatus", "errorcode", "errortype", "type", "success", "ok", "id", "requestid"}
    | {"traceid", "timestamp", "time", "path", "instance", "param", "object", "created", "model", "retryafter"}
)
_FAILURE = re.compile(r"[45][0-9]{2}|error|failed|failure", re.IGNORECASE)
_KNOWN = _TECHNICAL.union(_ERRORS, _WORDS)
#: What an error that is an object has.
_OF_OBJECTS = ("message", "msg", "detail", "reason", "description", "type", "code", "status")


def error_reply(text: str) -> str:
    """Return what an answer says that is an error and nothing else; "" for any other answer.

    >>> error_reply('{"error": {"message": "overloaded", "code": 503}}'), error_reply('{"error": null, "total": "5"}')
    ('overloaded', '')
    """
    if len(text) > _LONGEST or not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return ""
    data = json_in(text.lstrip("\ufeff"))
    if not isinstance(data, dict):
        return ""
    said = {"".join(filter(str.isalnum, str(key))).lower(): value for key, value in data.items()}
    if not said.keys() <= _KNOWN:
        return ""
    # FastAPI says no more than `detail`.
    words = _WORDS if _is_failure(said) else ("detail",) if len(said) == 1 else ()
    return next((found for key in (*_ERRORS, *words) if (found := _said(said.get(key)))), "")


def _is_failure(said: Mapping[str, Any]) -> bool:
    """Return whether a code, a status or a flag says that something failed."""
    codes = [said.get(name) for name in ("code", "status", "statuscode", "httpstatus", "errorcode")]
    return (
        any(_FAILURE.fullmatch(str(code)) for code in codes)
        or said.get("error") is True
        or said.get("success") is False
        or said.get("ok") is False
    )


def _said(value: Any) -> str:
    """Return the words of an error, "" if it is none."""
    if isinstance(value, str):
        return " ".join(value.split())[:_LONGEST_SAID]
    if isinstance(value, list):
        found = [_said(each) for each in value]
        return "; ".join(found)[:_LONGEST_SAID] if all(found) else ""
    texts = [value.get(key) for key in _OF_OBJECTS] if isinstance(value, dict) else []
    return next((_said(str(each)) for each in texts if each and isinstance(each, str | int)), "")
