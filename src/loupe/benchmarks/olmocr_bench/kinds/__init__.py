"""The kinds of tests, one module each, and all tests of a page on one answer."""
