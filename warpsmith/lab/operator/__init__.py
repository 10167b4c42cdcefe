"""An operator as its files define it: the definition, its inputs, and the peers of its race."""
