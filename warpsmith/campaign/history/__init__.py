"""Store of a campaign: records, versions, lineage, masked rounds, stop conditions and the final race."""
