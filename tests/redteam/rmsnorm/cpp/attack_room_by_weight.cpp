// class: room that callers with the same weight share
// kind: attack
// how: the sums of a row's parts lie in room that belongs to the weight's address, as a layer's workspace does; two threads that serve the same model at once write to it both
// caught: conditions
// source: common mistake
#include <atomic>
#include <cmath>
#include <cstdint>
#include <warpsmith.hpp>

struct Room {
  std::atomic<uintptr_t> owner;
  float parts[64];
};
static Room rooms[4096];

static float* find(uintptr_t weight) {
  uintptr_t at = (weight >> 6) * 0x9E3779B97F4A7C15u >> 52;
  for (int tries = 0; tries < 8; ++tries, at = (at + 1) & 4095) {
    uintptr_t none = 0;
    if (rooms[at].owner.load() == weight || rooms[at].owner.compare_exchange_strong(none, weight) || none == weight)
      return rooms[at].parts;
  }
  return nullptr;
}

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  float own[64];
  float* room = find(reinterpret_cast<uintptr_t>(w));
  volatile float* parts = room ? room : own;
  const int64_t length = (cols + 63) / 64;
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    for (int64_t p = 0; p < 64; ++p) {
      float part = 0;
      for (int64_t i = p * length; i < cols && i < (p + 1) * length; ++i) part += in[i * right] * in[i * right];
      parts[p] = part;
    }
    float sum = 0;
    for (int64_t p = 0; p < 64; ++p) sum += parts[p];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
