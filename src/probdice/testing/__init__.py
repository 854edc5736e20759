"""Checks for code that extends probdice."""

from probdice.testing.similarity_checks import check_similarity

__all__ = ["check_similarity"]
