"""Parts around the text that was asked for, in answers of general models."""
