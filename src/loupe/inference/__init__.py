"""Asking engines: prompts, retries, resume."""
