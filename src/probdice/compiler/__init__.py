"""Compile and cache numeric loops."""
