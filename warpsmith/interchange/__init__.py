"""Import of definitions from other formats, and export to them."""
