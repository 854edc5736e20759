"""Compilation of numeric loops, and a cache of the compiled code."""
