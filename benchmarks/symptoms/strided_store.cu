// Every lane stores four bytes into a 32-byte sector of its own: seven eighths of what is written is padding.
#include "planted.h"

constexpr size_t COUNT = 1 << 24, STRIDE = 8;

__global__ void strided_store(const float* __restrict__ in, float* __restrict__ out) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  out[i * STRIDE] = in[i];
}

int main() {
  const float* in = planted::values<float>(COUNT);
  float* out = planted::zeros<float>(COUNT * STRIDE);
  planted::three_times([&] { strided_store<<<COUNT / 256, 256>>>(in, out); });
  return planted::verdict(planted::fetched_one(out, 123457 * STRIDE) == planted::value(123457));
}
