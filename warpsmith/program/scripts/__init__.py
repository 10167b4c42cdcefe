"""Scripts with a training loop of their own: found without a run, then run as they are, step by step."""
