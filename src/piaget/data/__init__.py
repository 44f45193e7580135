"""What is learned from: tasks, and how a user's data becomes inputs and targets."""
