"""Recognise an answer that is nothing but the error of a service, as JSON: `{"error": "rate limit exceeded"}`.

Source: docs/scoring-rules.md#formats-of-answers. Only a whole answer counts, of which no key says anything else, and
which stands in no code fence: a model that reads such JSON from a page usually fences it. Fields of a document may be
called `detail`, `code` or `error`, too, so these count only beside a sign that something failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from loupe.engines.adapters.service_json import json_in

#: Errors are short. Longer JSON is read by nobody.
_LONGEST, _LONGEST_SAID = 20_000, 500
#: Keys of an error, in lower case without separators; the first that says something is quoted.
_ERRORS = ("error", "errors", "errormessage", "errormsg")
#: Words about a failure that fields of a document may have, too.
_WORDS = ("message", "msg", "detail", "reason", "title")
#: Keys that say nothing about a page. Those of the first line are no names of fields.
_OF_SERVICES = frozenset({"requestid", "traceid", "param", "errortype", "type", "retryafter"})
_TECHNICAL = _OF_SERVICES | {"code", "status", "statuscode", "httpstatus", "errorcode", "success", "ok", "id"}
_KNOWN = _TECHNICAL.union(_ERRORS, _WORDS, ("timestamp", "time", "path", "instance", "object", "created", "model"))
_FAILED = frozenset({"error", "failed", "failure"})
_PHRASES = frozenset(status.phrase.lower() for status in HTTPStatus if status >= 400)
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
    return next((found for key in _error_keys(said) if (found := _said(said.get(key)))), "")


def _error_keys(said: Mapping[str, Any]) -> list[str]:
    """Return the keys that hold an error: unlike those of a document, or beside a sign of failure."""
    flagged = (
        said.get("error") is True or said.get("object") == "error" or False in (said.get("success"), said.get("ok"))
    )
    status = any(_is_failing(said.get(name)) for name in ("status", "statuscode", "httpstatus"))
    failed = flagged or status or str(said.get("status")).lower() in _FAILED
    code = any(_is_failing(said.get(name)) for name in ("code", "errorcode"))
    alone = said.keys() - _OF_SERVICES
    keys = [key for key in _ERRORS if failed or code or _is_object(said.get(key)) or alone == {key} != {"errors"}]
    if failed:
        return [*keys, *(key for key in _WORDS if key != "title" or flagged or status)]
    if code:
        return [*keys, "message", "msg"]
    # FastAPI says no more than `detail`.
    detail = said.get("detail")
    of_fastapi = _is_object(detail) or (isinstance(detail, str) and detail.strip().lower() in _PHRASES)
    return [*keys, *(["detail"] if of_fastapi and len(said) == 1 else [])]


def _is_failing(status: Any) -> bool:
    return isinstance(status, int) and 400 <= status < 600


def _is_object(value: Any) -> bool:
    """Return whether this is an error as an object, or a list with one; `_said` knows what such an object has."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def _said(value: Any) -> str:
    """Return the words of an error, "" if it is none."""
    if isinstance(value, str):
        return " ".join(value.split())[:_LONGEST_SAID]
    if isinstance(value, list):
        found = [_said(each) for each in value]
        return "; ".join(found)[:_LONGEST_SAID] if all(found) else ""
    texts = [value.get(key) for key in _OF_OBJECTS] if isinstance(value, dict) else []
    return next((_said(str(each)) for each in texts if each and isinstance(each, str | int)), "")
