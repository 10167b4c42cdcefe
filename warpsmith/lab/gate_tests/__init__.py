"""Tests of the gate itself: the red team, and a kernel judged against itself."""
