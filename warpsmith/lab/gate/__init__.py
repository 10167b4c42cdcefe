"""The gate: the checks that lead to a verdict, in order."""
