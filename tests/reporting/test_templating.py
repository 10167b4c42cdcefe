"""Templates: a missing value is an error, a bare number is one too, and strings are escaped."""

import jinja2
import pytest

from warpsmith.reporting import format, templating


def rendered(source, **values):
    return templating._environment().from_string(source).render(**values)


def test_missing_values_are_errors():
    with pytest.raises(jinja2.UndefinedError):
        templating.fill_template("trend", manifest=None)


def test_a_bare_number_is_an_error():
    with pytest.raises(TypeError, match="was not formatted"):
        rendered("{{ x }}", x=0.1234567)


def test_everything_but_markdown_is_escaped():
    assert rendered("{{ x }} {{ y }} {{ z }}", x="a|b", y=format.Md("a|b"), z=None) == r"a\|b a|b -"


def test_formatted_values_are_not_escaped_again():
    assert rendered("{{ x | code }} {{ y | gain }}", x="a_b", y=-0.031) == "`a_b` -3.1 %"
