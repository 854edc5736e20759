"""The mathematics of matching, merging, scores and chance; NumPy only."""
