"""Rounds of a campaign: the phase that is due, the parts of the open round, and its closing."""
