"""Numbers that a version's source holds, in Python and in C++."""

from __future__ import annotations

import pytest

from warpsmith.languages.source_numbers import read_changed_numbers, read_numbers


@pytest.fixture
def numbers(tmp_path):
    def read(text: str, suffix: str) -> frozenset[float]:
        path = tmp_path / f"v1{suffix}"
        path.write_text(text)
        return read_numbers(path)

    return read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1 << 20", 1 << 20),
        ("x = 65536 * 4", 1 << 18),
        ("x = 1e6", 1e6),
        ("x = 0x1F", 31),
        ("x = -7.5", 7.5),
        ("BLOCK = 96\nx = BLOCK * 11", 1056),
        ("SIZE: tl.constexpr = tl.constexpr(768)\nx = SIZE + 1", 769),
        ("class Config:\n    MOST = 123\nx = Config.MOST * 2", 246),
        ("x = n // 4096 > 16", 1 << 16),
        ("x = n * 3 >= 999", 333),
        ("x = 5 < n + 2", 3),
        ("x = n >> 17", 1 << 17),
        ("kernel = '''if (n > 0x10000) y = 3.5f;'''", 1 << 16),
    ],
)
def test_python(numbers, text, expected):
    assert expected in numbers(text, ".py")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1 << 20;", 1 << 20),
        ("x = 1'000'000;", 10**6),
        ("x = 0x1Fu;", 31),
        ("x = 0b101;", 5),
        ("x = 017;", 15),
        ("x = 2.5e-3F;", 2.5e-3),
        ("x = .5f;", 0.5),
        ("x = 0x1.8p3;", 12.0),
        ("x = 3ull * 5;", 15),
        ("#define BIG (1 << 21)\nx = BIG * 2;", 1 << 22),
        ("constexpr int64_t kTile = 96;\nx = kTile * 11 + 1;", 1057),
        ("constexpr int kRoom{768};\nx = kRoom * 2;", 1536),
        ("enum { kMost = 123 };\nx = kMost * 3;", 369),
        ("x = static_cast<int64_t>(3) << 10;", 3072),
        ("x = (float)7 * 3;", 21),
        ("if (n / 4096 > 16) f();", 1 << 16),
        ("if ((n >> 4) >= 1000) f();", 16000),
        ("if (n >> 17) f();", 1 << 17),
        ("x = -(3 + 4) * 2;", 14),
    ],
)
def test_cpp(numbers, text, expected):
    assert expected in numbers(text, ".cpp")


def test_operators_bind_as_in_the_language(numbers):
    assert numbers("x = n * 40 + 3;", ".cpp") == {40, 3}  # the product belongs to n
    assert 46 in numbers("x = 40 + 3 * 2;", ".cpp")
    assert 86 not in numbers("x = 40 + 3 * 2;", ".cpp")


def test_comments_and_texts_of_cpp_hold_no_numbers(numbers):
    assert numbers('// 77\n/* 88 */ const char* s = "99";', ".cpp") == frozenset()


def test_a_name_with_two_values_is_no_constant(numbers):
    assert numbers("a = 5\na = 7\nx = a * 100", ".py") == {5, 7, 100}
    assert numbers("int a = 5; a = 7; x = a * 100;", ".cpp") == {5, 7, 100}


@pytest.mark.parametrize("suffix", [".py", ".cpp"])
def test_sources_made_to_break_the_reader(numbers, suffix):
    assert 4321 in numbers(f"x = 4321;\ny = {'1+' * 5000}1;\n", suffix)
    assert 4321 in numbers("x = 4321;\ny = 1 << 999999;\nz = 1 % 0;\nw = 1 / 0;\n", suffix)
    assert 4321 in numbers(f"x = 4321;\ny = {'(' * 150}1{')' * 150};\n", suffix)


def test_python_that_does_not_parse_has_none(numbers):
    assert numbers("def run(:\n 5", ".py") == frozenset()


GUARDED = "def step(n):\n    if n > 5000:\n        log()\n    return 64 * n\n"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (GUARDED, set()),
        (f"x = 1\n{GUARDED}", {1}),
        (GUARDED.replace("64", "96"), {96}),
        (GUARDED.replace("log()", "return 7"), {5000, 7}),
        (GUARDED.replace("    return", "    if n > 64: return 3\n    return"), {64, 3}),
        ("LATE = 900\n" + GUARDED.replace("log()", "f(n % LATE)"), {900, 5000}),
        (GUARDED + "match n:\n    case 300:\n        pass\n", {300}),
        (GUARDED + "def f(", set()),
    ],
)
def test_numbers_of_changed_statements(after, expected):
    assert read_changed_numbers(GUARDED, after) == expected
