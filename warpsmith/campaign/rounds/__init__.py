"""Rounds: what is due, the steps of the open round, and its closing."""
