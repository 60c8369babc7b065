"""Stands in for PyTorch: one name. Arrays of NumPy are tensors enough."""

bfloat16 = "bfloat16"
