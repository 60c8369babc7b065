"""LaTeX as plain characters, as pylatexenc 3.0a30 and 2.10 have them, with bounded work."""
