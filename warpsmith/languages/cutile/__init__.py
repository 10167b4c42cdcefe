"""cuTile, the tile language of CUDA."""
