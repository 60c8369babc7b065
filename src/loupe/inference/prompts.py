"""Choose the prompt for a sample: its own question, else the profile's, else the benchmark's, else the task's."""

from __future__ import annotations

from collections.abc import Iterable

from loupe.engines.registry import Profile
from loupe.types import Benchmark, Request, Sample

#: Prompts for engines and benchmarks that name none (docs/engines/openai.md).
TASK_PROMPTS = {
    "text": "Transcribe all text in this image in reading order. Output ONLY the text, no explanations.",
    "markdown": "Convert this document page to markdown. Rules:\n- Output ONLY the markdown, no explanations\n"
    "- Use $...$ for inline math and $$...$$ for display math\n"
    "- Use HTML <table> tags for tables with proper colspan/rowspan\n- Preserve reading order",
    "formula": "Convert this mathematical expression to LaTeX. Output ONLY the LaTeX code, nothing else.",
    "table": "Convert this table image to HTML. Rules:\n- Use <table>, <thead>, <tbody>, <tr>, <th>, <td> tags\n"
    "- Include colspan and rowspan attributes where needed\n- Output ONLY the HTML table, no explanations",
}


def template_for(task: str, *, profile: Profile, benchmark: Benchmark, benchmark_id: str) -> str:
    """The prompt for samples of `task` without a question of their own. `"*"` in a profile stands for everything.

    An engine that asks regions has no prompt for pages, and one that reads them itself none for what it reads.
    """
    if profile.asks_regions:
        return ""
    for key in ("*", benchmark_id, task):
        if key in profile.prompts:
            return profile.prompts[key]
    if task in profile.unasked:
        return ""
    return benchmark.prompt or TASK_PROMPTS.get(task, "")


def prompts_by_task(
    tasks: Iterable[str], *, profile: Profile, benchmark: Benchmark, benchmark_id: str
) -> dict[str, str]:
    """Return the prompts: of samples of these tasks without a question of their own, or of the regions of any page."""
    if profile.asks_regions:
        return dict(profile.prompts)
    return {task: template_for(task, profile=profile, benchmark=benchmark, benchmark_id=benchmark_id) for task in tasks}


def make_request(sample: Sample, *, profile: Profile, benchmark: Benchmark, benchmark_id: str) -> Request:
    """Make the request that an engine sees of a sample: no ground truth."""
    task = sample.task or benchmark.task
    prompt = sample.prompt or template_for(task, profile=profile, benchmark=benchmark, benchmark_id=benchmark_id)
    return Request(
        id=sample.id,
        prompt=prompt,
        images=sample.images,
        text=sample.text,
        task=task,
        max_tokens=benchmark.max_tokens,
    )
