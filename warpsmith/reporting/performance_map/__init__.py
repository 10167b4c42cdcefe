"""A performance map as lines on a terminal, as a page with a picture, and as a record on disk."""
