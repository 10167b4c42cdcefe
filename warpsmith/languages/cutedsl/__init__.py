"""CuTe DSL of CUTLASS."""
