"""How numbers, names and paths are written for people."""
