"""Regions of a compiled step: found in its graphs, written as definitions, and judged in the whole step."""
