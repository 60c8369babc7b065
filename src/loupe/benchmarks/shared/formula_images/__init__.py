"""Scoring formulas by how they look: CDM in the benchmarks, with what is drawn kept in Loupe's cache."""
