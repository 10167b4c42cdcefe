"""What a machine reaches and how much it scatters: ceilings, noise, and the kept measurement."""
