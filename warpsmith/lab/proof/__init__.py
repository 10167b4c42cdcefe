"""Proof of a definition: its reference holds its bound, and wrong implementations do not."""
