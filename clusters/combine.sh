#!/bin/bash
# Combine the results of all methods. The journals hold every finished case, so nothing is computed
# again; only the ranking, the tables and the pages are new.
set -euo pipefail
mkdir -p results/all
for folder in predictions/*/; do
    cat "results/$(basename "$folder")/cases.jsonl"
done > results/all/cases.jsonl
probdice evaluate truth predictions/*/ -o results/all "$@"
