"""The engine kind `layout_pipeline`: a layout detector cuts pages into regions, and any vision model reads them.

The rules are those of the GLM-OCR SDK (zai-org/GLM-OCR @ cef4d0ea, default configuration); docs/engines/layout.md.
"""

HOOKS = {
    "engines": {"layout_pipeline": "loupe.features.layout.engine"},
    "profiles": {"layout": "loupe.features.layout.profiles"},
}
