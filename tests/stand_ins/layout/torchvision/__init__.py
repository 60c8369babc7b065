"""Stands in for torchvision: that it is there is all that is asked."""
