"""Arithmetic of the nouns: data types, expressions over axes, and the roofline."""
