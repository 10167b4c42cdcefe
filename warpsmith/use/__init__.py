"""Accepted versions in use: which one is the best for a device, and that version as a function on tensors."""
