"""A prior over structures, learned from all tasks."""
