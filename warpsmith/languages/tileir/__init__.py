"""TileIR under Triton: the source of a Triton version, compiled by NVIDIA's tile compiler in place of PTX."""
