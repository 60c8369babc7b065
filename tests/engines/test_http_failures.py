"""Which error a failing HTTP answer becomes: a refused page is not a refused key or setting."""

from __future__ import annotations

import pytest

from loupe.engines.chat.http_failures import failure
from loupe.errors import AccountError, NoAnswerError, RejectedError
from loupe.typed import encode_json


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "no", "code": "content_filter"}),
        (400, {"message": "no", "code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}}),
        (400, {"message": 'upstream said {"error": {"code": "content_filter"}}', "code": 400}),
        (400, {"message": "litellm.ContentPolicyViolationError: no", "code": "400"}),
        (400, {"message": "Output blocked by content filtering policy", "type": "invalid_request_error"}),
        (400, {"message": "Your request was rejected as a result of our safety system.", "type": "user_error"}),
        (
            403,
            {"message": "Your chosen model requires moderation on X. Your input was flagged for violence", "code": 403},
        ),
        (422, {"message": "The prompt has been blocked due to safety", "code": 422}),
    ],
)
def test_a_refused_page_is_a_failure_of_its_own_kind(status: int, error: dict[str, object]) -> None:
    refused = failure(status, encode_json({"error": error}), None, key_hint="")
    assert isinstance(refused, NoAnswerError) and refused.outcome == "refused"


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (403, "guardrail admin role required", AccountError),
        (403, "content policy requires a verified key", AccountError),
        (403, "your account has been blocked for violating our content policy", AccountError),
        (403, "image input is blocked for this key", AccountError),
        (403, "requests from your address are blocked", AccountError),
        (403, "the safety filter cannot be changed by this role", AccountError),
        (400, "response_format not supported with content filtering models", RejectedError),
        (400, "unknown guardrail 'pii'", RejectedError),
        (400, "content_filter is no setting of this deployment", RejectedError),
    ],
)
def test_settings_of_filters_and_guardrails_are_no_refusal(status: int, message: str, kind: type[Exception]) -> None:
    assert type(failure(status, encode_json({"error": {"message": message}}), None, key_hint="")) is kind
