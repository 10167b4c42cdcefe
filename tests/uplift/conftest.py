"""Fixtures of uplift's tests, which the tests of its commands share."""

from uplift_samples import make_cell as make_cell
from uplift_samples import square_suite as square_suite
