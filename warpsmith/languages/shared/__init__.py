"""Code that several languages share: Python and C++ source, compilation without a GPU, and compiled objects."""
