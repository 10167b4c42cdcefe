"""Times of sides: sessions, samples, clocks, energy and the statistics over them."""
