"""Tools for contributors, which are not part of the package."""
