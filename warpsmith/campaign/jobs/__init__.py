"""Jobs of campaigns: sent to the machine of a context, and performed there."""
