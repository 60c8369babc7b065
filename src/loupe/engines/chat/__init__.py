"""Asking OpenAI-compatible servers: addresses, requests, answers and failures."""
