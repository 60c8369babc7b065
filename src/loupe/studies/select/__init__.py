"""Choosing a model for documents of one type: vision models by image, text models by text, one after the other."""
