#!/bin/bash
# Combine the results of all methods. The journals contain every finished case, so finished cases are
# not computed again. The ranking, the tables and the pages are created.
set -euo pipefail
mkdir -p results/all
for folder in predictions/*/; do
    cat "results/$(basename "$folder")/cases.jsonl"
done > results/all/cases.jsonl
probdice evaluate truth predictions/*/ -o results/all "$@"
