"""docs/results.md, made of collected results (results/paper) without training: `make results`."""
