"""Which items of an answer are held against which blocks of the ground truth."""
