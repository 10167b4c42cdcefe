"""Campaigns: rounds, records, lineage, memory, stagnation, and what is due next. Measures nothing itself."""
