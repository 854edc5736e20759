"""Segmentations, their geometry and the arrays that they are made from."""
