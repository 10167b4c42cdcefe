"""What a worker does around a call of a version."""
