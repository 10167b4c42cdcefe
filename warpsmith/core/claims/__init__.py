"""Claims in texts: figures, words that name a verdict, and the values that support them."""
