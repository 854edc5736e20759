"""Stress tests: corrupt and malicious files, random options, killed processes and full disks.

`python -m fuzz` reads mutants of small valid files of every format (`make fuzz`),
`python -m fuzz.torture` checks random comparisons against the reference implementation in
tests/oracles.py (`make torture`), and `python -m fuzz.kills` kills `evaluate` and simulates a full
disk (`make kills`).
"""
