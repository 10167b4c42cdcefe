"""What is known: entries, the catalog over both layers, the index, and the gate that LEARN passes through."""
