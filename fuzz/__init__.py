"""What probdice survives: damaged and hostile files, random options, kills and full disks.

`python -m fuzz` reads mutants of small honest files of every format (`make fuzz`),
`python -m fuzz.torture` holds random comparisons against the slow twin in tests/oracles.py
(`make torture`), and `python -m fuzz.kills` kills `evaluate` and fills its disk (`make kills`).
"""
