"""Runs side by side: ranks, differences, notes, and numbers as text. No HTML, and nothing that knows a terminal."""
