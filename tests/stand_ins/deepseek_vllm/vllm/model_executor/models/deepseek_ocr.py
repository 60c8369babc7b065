"""Stands in for vLLM's model of DeepSeek-OCR: its n-gram rule, by name."""


class NGramPerReqLogitsProcessor:
    """The rule."""
