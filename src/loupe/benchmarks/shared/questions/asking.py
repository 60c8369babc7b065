"""What the official runners ask: the question with the words around it. Protocol: docs/protocols/qa.md#prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

Variant: TypeAlias = Literal["vlmevalkit", "lmms_eval", "evalscope"]
#: Whose words stand around the question: those of the variant, of another runner, or none ("question").
Prompt: TypeAlias = Literal["variant", "vlmevalkit", "lmms_eval", "evalscope", "question"]

SHORT = "{question}\nAnswer the question using a single word or phrase."
#: The prompts of DocVQA and InfoVQA by runner.
DOCUMENT_PROMPTS: Mapping[str, str] = {
    "vlmevalkit": SHORT,
    "lmms_eval": SHORT,
    "evalscope": (
        "Answer the question according to the image using a single word or phrase.\n{question}\n"
        'The last line of your response should be of the form "ANSWER: [ANSWER]" (without quotes) '
        "where [ANSWER] is the answer to the question."
    ),
}


def ask(question: str, prompts: Mapping[str, str], variant: Variant, prompt: Prompt) -> str:
    """The question as one of the runners asks it; as it stands where none of them has words for it.

    `{question}` is the question, `{Question}` the same with its first letter large and all others small.
    """
    form = prompts.get(variant if prompt == "variant" else prompt, "{question}")
    # Not str.format: nothing else in braces is filled in.
    if "{Question}" in form:
        return form.replace("{Question}", question.capitalize())
    return form.replace("{question}", question)
