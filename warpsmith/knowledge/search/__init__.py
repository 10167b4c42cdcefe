"""Search over entries: words, synonyms, symptoms and the ranking by them."""
