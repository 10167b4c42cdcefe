"""C++ on the CPU."""
