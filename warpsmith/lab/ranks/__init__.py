"""Operators over ranks: several processes compute one operator together, and are judged together."""
