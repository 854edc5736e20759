"""Segmentations, their geometry, and the arrays from which they are created."""
