"""From measured values to symptoms, a bottleneck and opportunities."""
