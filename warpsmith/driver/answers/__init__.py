"""Answers of agents: their models, and how a message is read, written and checked."""
