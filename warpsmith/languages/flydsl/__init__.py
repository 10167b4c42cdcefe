"""FlyDSL, AMD's language of layouts and tiles."""
