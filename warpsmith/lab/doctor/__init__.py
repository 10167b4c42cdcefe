"""The checks of `warpsmith doctor`."""
