"""What the repository itself is checked with."""
