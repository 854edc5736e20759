"""The method: similarities of probabilities, matching, merging, scores and chance levels."""
