"""Stands in for a package that only has to be there."""
