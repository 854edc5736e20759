"""The mathematics of similarities, matching, merging, scores and chance, in NumPy."""
