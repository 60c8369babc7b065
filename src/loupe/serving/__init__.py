"""Offering an engine as an OpenAI-compatible server."""
