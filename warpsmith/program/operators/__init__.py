"""A program's operators: extracted as definitions, and replaced by accepted kernels."""
