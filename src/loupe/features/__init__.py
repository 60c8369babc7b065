"""Features beside the core: a folder each, which the core reaches only through `loupe.hooks`."""
