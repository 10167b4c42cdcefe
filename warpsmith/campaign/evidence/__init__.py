"""Whether records and pages still stand for what they claim."""
