"""Texts of answers in the form in which they are searched, and the search for near matches."""
