"""Computations that pass over the pixels of images, block by block."""
