// class: table of the process
// kind: control
// how: builds its table once under call_once and keeps it for the life of the process
#include <warpsmith.hpp>
#include <mutex>
#include <cmath>

static float levels[256];

static void build() {
  for (int code = 0; code < 256; ++code) levels[code] = static_cast<float>(std::pow(code / 255.0, 2.4));
}

extern "C" void run(const Tensor& code, Tensor& y) {
  static std::once_flag once;
  std::call_once(once, build);
  const int64_t n = code.numel();
  const uint8_t* from = code.data<uint8_t>();
  float* to = y.data<float>();
  for (int64_t i = 0; i < n; ++i) to[i] = levels[from[i]];
}
