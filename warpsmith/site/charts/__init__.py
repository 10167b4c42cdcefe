"""Charts of the site as inline SVG with links; every mark carries the record that it shows."""
