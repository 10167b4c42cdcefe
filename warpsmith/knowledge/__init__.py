"""Knowledge entries, their evidence, the catalog and its generated pages."""
