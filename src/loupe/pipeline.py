"""The line in one place: what `loupe run`, `infer` and `score` do, callable from Python."""
