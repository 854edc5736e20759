"""Segmentations and their geometry, made from whatever people have."""
