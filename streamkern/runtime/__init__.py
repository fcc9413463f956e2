"""What a process has and does: memory, threads, signals, events. It knows no data."""
