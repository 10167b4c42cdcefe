"""Contenders: several versions with different hypotheses that a round designs at once; the gate judges one."""
