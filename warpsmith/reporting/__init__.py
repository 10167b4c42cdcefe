"""Reports, tables and plots, rendered from records for people and agents."""
