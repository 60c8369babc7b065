"""The kinds of test, one file for each output or structure that they look at."""
