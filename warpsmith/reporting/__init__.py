"""What people read: pages, plots and tables, rendered from records alone and again byte for byte."""
