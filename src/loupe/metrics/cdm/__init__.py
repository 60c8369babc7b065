"""CDM: Character Detection Matching, how much of a formula is drawn where it should be (protocol page cdm.md)."""
