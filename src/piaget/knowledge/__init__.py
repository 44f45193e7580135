"""What a learner knows, how it changes when tasks begin and end, and how it is saved."""
