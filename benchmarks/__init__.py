"""Benchmarks relative to memory bandwidth and to other tools; results are ratios."""
