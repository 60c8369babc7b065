"""The folder format for a user's own documents: `loupe.toml` + `samples.jsonl` (docs/own-data.md)."""

from loupe.benchmarks.folders.own.config import Problem
from loupe.benchmarks.folders.own.folder_benchmark import open_folder
from loupe.benchmarks.folders.own.starting import not_in_samples, unlisted_files, unread_pages
from loupe.benchmarks.folders.own.survey import check_folder, open_truth, survey_folder

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
