"""Ports: evidence on versions for devices that are not here."""
