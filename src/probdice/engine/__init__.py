"""Passes over the pixels of images, block by block."""
