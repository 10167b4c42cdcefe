"""The machine at hand: its device, its load, its clocks, and the provenance of what is measured on it."""
