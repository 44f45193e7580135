"""How a method is trained: layout, batches, steps, compiled or not, one run or many."""
