"""Old path of `warpsmith.load_sibling`, which definitions on disk import under its old name `beside`."""

from warpsmith import load_sibling

globals()["beside"] = load_sibling  # Only those definitions use this name.
