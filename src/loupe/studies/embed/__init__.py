"""The third step after layout and OCR: page texts, figure crops and queries as vectors, and how well they retrieve.

Protocol: docs/embedding.md.
"""
