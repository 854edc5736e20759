"""Benchmarks. Most results are ratios to memory bandwidth or to the times of other tools."""
