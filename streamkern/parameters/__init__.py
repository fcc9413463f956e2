"""What a fit is told, and what that will take in memory and time."""
