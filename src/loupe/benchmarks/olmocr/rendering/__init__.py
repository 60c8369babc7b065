"""Equations as KaTeX draws them in Chromium (olmOCR-Bench, protocol section 8.3), many at once, remembered on disk."""
