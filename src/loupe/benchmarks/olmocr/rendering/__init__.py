"""Equations as KaTeX draws them in Chromium (protocol of olmOCR-Bench, section 8.3), many at once, remembered on disk."""
