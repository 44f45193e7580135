"""What a method is: its parts, and the network they make."""
