"""The nouns as pydantic models, and roofline arithmetic. Knows nothing of GPUs, files or agents."""
