"""Calibration of a machine: ceilings, the noise floor, and the saved measurement."""
