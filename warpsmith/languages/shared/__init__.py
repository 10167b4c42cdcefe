"""What several languages use."""
