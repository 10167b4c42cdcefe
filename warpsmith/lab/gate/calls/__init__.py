"""Kinds of calls that users make and a version must answer rightly."""
