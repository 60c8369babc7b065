"""Formulas set by TeX and found on the drawn page: from token lists to boxes, in processes with limits."""
