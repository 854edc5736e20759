"""compare(), overlap(), and their result."""
