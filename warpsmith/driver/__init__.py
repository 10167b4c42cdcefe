"""Headless loop: does the step that is due, and asks a designer for the steps that need one."""
