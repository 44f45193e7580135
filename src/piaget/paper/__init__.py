"""The paper's names, results, settings and experiments, as plain data. No heavy imports."""
