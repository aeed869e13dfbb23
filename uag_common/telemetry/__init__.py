"""What a process tells of itself: spans, metrics, and where they go. Knows no service."""
