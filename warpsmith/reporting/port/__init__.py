"""Pages and lines of ports."""
