"""C++ as text: what counts as the same version, and which lines a reviewer is sent to."""

from __future__ import annotations

import pytest

from warpsmith.languages.shared.cpp_source import lint_cpp, normalise_cpp

HONEST = """
#include <warpsmith.hpp>
// fork() and system() in a comment are nothing
static inline float* at(float* p, int64_t i) { return p + i; }
static float square(const float* x) { return *x * *x; }
static constexpr int64_t BLOCK = 64;
static const float TABLE[4] = {1, 2, 3, 4};
template <typename T> static T* shifted(T* p) { return p + 1; }
extern "C" void run(const Tensor& x, double clock, Tensor& y) {
  const char* text = "popen(1) and std::thread";
  float* out = y.data<float>();
  const bool aligned = reinterpret_cast<uintptr_t>(out) % 64 == 0;
#pragma omp parallel for simd
  for (int64_t i = 0; i < x.numel(); ++i) out[i] = square(x.data<float>() + i);
  x.open(3);
}
"""


def test_honest_source_is_not_named():
    assert lint_cpp(HONEST) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("  if (fork()) return;", "process"),
        ('  ::system("true");', "process"),
        ('  auto h = dlopen("x.so", 1);', "process"),
        ("  std::thread t(f);", "threads"),
        ("  pthread_create(&t, 0, f, 0);", "threads"),
        ("  static std::unordered_map<const void*, float> cache;", "call to call"),
        ("std::map<const float*, int> cache;", "keyed by an address"),
        ("  static const float* last = nullptr;", "call to call"),
        ("  thread_local void* last;", "call to call"),
        ("float* buffer = nullptr;", "outlives"),
        ("  auto t = std::chrono::steady_clock::now();", "clock"),
        ("  clock_gettime(CLOCK_MONOTONIC, &t);", "clock"),
        ("  auto t = time(nullptr);", "clock"),
        ('  std::ofstream f("x");', "files"),
        ('  int f = open("x", 0);', "files"),
        ('  const char* where = "/proc/self/maps";', "machine's state"),
        ("  std::signal(11, handler);", "signals"),
        ('  asm volatile("rdtsc");', "assembly"),
    ],
)
def test_finding_names_its_line(line, word):
    found = lint_cpp(f"{HONEST}\n/* a\n b */\n{line}\n")
    number = len(HONEST.splitlines()) + 4
    assert len(found) >= 1
    assert all(text.startswith(f"line {number}: ") for text in found)
    assert any(word in text for text in found)


def test_layout_and_comments_do_not_count():
    one = '#define A 1\nint f(int a) {\n  // says why\n  return a + A; /* done */\n}\nconst char* s = "a  // b";\n'
    two = '#define   A 1 // one\nint f( int a )\n{ return a+A; }  const char*s="a  // b";'
    assert normalise_cpp(one) == normalise_cpp(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ('const char* s = "a  b";', 'const char* s = "a b";'),
        ("char c = '\"'; int x; // y", "char c = '\"'; int y; // y"),
        ('auto s = R"x(// kept)x";', 'auto s = R"x(// other)x";'),
        ("a + ++b", "a++ + b"),
        ("#define A 1\n+ 2", "#define A 1 + 2"),
        ("int n = 1'000; // '", "int n = 1'001; // '"),
    ],
)
def test_what_differs_stays_different(one, two):
    assert normalise_cpp(one) != normalise_cpp(two)
