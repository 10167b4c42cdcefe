"""Preparation and observation of a version's calls in its worker."""
