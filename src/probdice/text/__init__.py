"""Format numbers, names and paths for display."""
