"""Evidence becomes an explanation: what limits a version, why, and what to try."""
