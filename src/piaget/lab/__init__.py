"""Experiments: many runs of many methods, and their table."""
