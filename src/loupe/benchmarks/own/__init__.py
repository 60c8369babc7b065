"""The folder format for a user's own documents: `loupe.toml` + `samples.jsonl` (docs/own-data.md)."""

from loupe.benchmarks.own.folder import check_folder, open_folder, survey_folder
from loupe.benchmarks.own.problems import Problem

__all__ = ["Problem", "check_folder", "open_folder", "survey_folder"]
