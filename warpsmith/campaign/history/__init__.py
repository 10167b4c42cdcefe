"""What stands on disk of a campaign: records, lineage, versions, and who writes."""
