// class: first calls at once
// kind: attack
// how: the first call builds a table, and one that starts meanwhile does not wait for it: two threads of a
//   server that begin together get zeros
// caught: correctness
#include <warpsmith.hpp>
#include <atomic>
#include <cmath>

static float levels[256];

static void build() {
  for (int code = 0; code < 256; ++code) levels[code] = static_cast<float>(std::pow(code / 255.0, 2.4));
}

extern "C" void run(const Tensor& code, Tensor& y) {
  static std::atomic<bool> begun{false};
  if (!begun.exchange(true)) build();
  const int64_t n = code.numel();
  const uint8_t* from = code.data<uint8_t>();
  float* to = y.data<float>();
  for (int64_t i = 0; i < n; ++i) to[i] = levels[from[i]];
}
