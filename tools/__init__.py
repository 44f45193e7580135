"""Tools for those who work on piaget."""
