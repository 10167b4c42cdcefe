"""Races of one version against the reference, `torch.compile` and the peers."""
