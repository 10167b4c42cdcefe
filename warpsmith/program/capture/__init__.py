"""Whether a program's step can be a CUDA graph: by its source, by watched steps, and by a trial capture."""
