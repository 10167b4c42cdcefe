"""Pages of the site, a module for each kind."""
