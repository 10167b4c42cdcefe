"""Values of inputs: distributions, masks, and integers and floats with structure."""
