"""Site: static pages of a project's kernels, knowledge and history, rendered from its records."""
