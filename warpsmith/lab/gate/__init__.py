"""The gate: the steps that lead to a verdict, in order."""
