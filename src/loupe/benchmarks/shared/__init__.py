"""What answers of general models have around what was asked for."""
