"""Use of accepted versions: the best one for a device, and that version as a function on tensors."""
