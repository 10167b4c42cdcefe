"""Old paths of `warpsmith.interchange`."""
