"""The folder format for a user's own documents: `loupe.toml` + `samples.jsonl` (docs/own-data.md)."""

from loupe.benchmarks.folders.own.checking import check_folder
from loupe.benchmarks.folders.own.folder_benchmark import open_folder
from loupe.benchmarks.folders.own.problems import Problem
from loupe.benchmarks.folders.own.survey import open_truth, survey_folder
from loupe.benchmarks.folders.own.unlisted import not_in_samples, unlisted_files, unread_pages

__all__ = [
    "Problem",
    "check_folder",
    "not_in_samples",
    "open_folder",
    "open_truth",
    "survey_folder",
    "unlisted_files",
    "unread_pages",
]
