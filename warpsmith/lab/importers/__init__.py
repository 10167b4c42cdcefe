"""Old path of `warpsmith.interchange`, which definitions on disk import."""
