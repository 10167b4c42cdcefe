"""Performance maps: accepted versions timed side by side at many shapes, and which of them runs at which."""
