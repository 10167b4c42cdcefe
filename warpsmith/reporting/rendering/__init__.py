"""Rendering of what changed: files with the inputs that they were rendered from, and pages as they should be."""
