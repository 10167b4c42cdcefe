"""The store of rounds and trials."""
