"""A page in regions: what a layout detector found, made into regions to read, and what was read into one page.

The rules are those of the GLM-OCR SDK (zai-org/GLM-OCR @ cef4d0ea, default configuration); docs/engines/glm-ocr.md.
"""
