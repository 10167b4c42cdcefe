"""Compile-only targets: what of a version transfers to a device that is not here, without any timing."""
