"""Errors as OpenAI's API states them: a status and `{"error": {"message", "type", "param", "code"}}`.

Source: https://platform.openai.com/docs/guides/error-codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from loupe.errors import (
    EngineTimeoutError,
    EngineUnavailableError,
    LoupeError,
    NoAnswerError,
    PageError,
    RejectedError,
    TransientEngineError,
)
from loupe.typed import encode_json

if TYPE_CHECKING:
    from aiohttp import web


class ApiError(Exception):
    """The error that a client gets. `param` names the part of the request that is wrong, `code` is for programs."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None, retry: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.retry = retry


def from_engine(error: LoupeError) -> ApiError:
    """The error of an engine as an answer: 422 for what is wrong with the page, 5xx for the engine's own trouble."""
    message = error.message
    if isinstance(error, RejectedError | NoAnswerError | PageError):
        return ApiError(422, message, param="messages", code="page_not_readable")
    if isinstance(error, EngineTimeoutError):
        return ApiError(504, message, code="engine_timeout")
    if isinstance(error, EngineUnavailableError):
        return ApiError(503, message, code="engine_unavailable")
    if isinstance(error, TransientEngineError):
        return ApiError(503, message, code="engine_busy", retry=True)
    return ApiError(500, message, code="engine_error")


def error_response(error: ApiError, headers: Mapping[str, str] | None = None) -> web.Response:
    """The answer that carries the error. Clients are told not to repeat what would fail in the same way."""
    from aiohttp import web

    kind = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}.get(error.status)
    kind = kind or ("server_error" if error.status >= 500 else "invalid_request_error")
    body = {"error": {"message": error.message, "type": kind, "param": error.param, "code": error.code}}
    # Read by OpenAI's own clients, which otherwise repeat every 5xx twice.
    extra = {"Retry-After": "1"} if error.retry else {"x-should-retry": "false"}
    return web.Response(
        status=error.status,
        body=encode_json(body),
        content_type="application/json",
        headers={**extra, **(headers or {})},
    )
