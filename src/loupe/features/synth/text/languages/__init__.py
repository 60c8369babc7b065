"""One language a file: phrases that fit together, and the font that has its letters."""
