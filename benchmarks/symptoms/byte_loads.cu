// Adds bytes of two long arrays, one byte a lane: each request fills one sector, and its warp waits for it.
#include "planted.h"

constexpr int PER_THREAD = 16;

__host__ __device__ inline unsigned char byte_of(size_t i) { return planted::hashed(int(i)) & 0xff; }

__global__ void fill_bytes(unsigned char* a, unsigned char* b) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  a[i] = byte_of(i);
  b[i] = byte_of(i + 7);
}

__global__ void byte_loads(const unsigned char* __restrict__ a, const unsigned char* __restrict__ b,
                           unsigned char* __restrict__ out) {
  size_t i = size_t(blockIdx.x) * blockDim.x * PER_THREAD + threadIdx.x;
#pragma unroll 1
  for (int step = 0; step < PER_THREAD; ++step, i += blockDim.x) out[i] = a[i] + b[i];
}

int main() {
  const size_t bytes = size_t(1) << 26;
  unsigned char* a = planted::zeros<unsigned char>(bytes);
  unsigned char* b = planted::zeros<unsigned char>(bytes);
  unsigned char* out = planted::zeros<unsigned char>(bytes);
  fill_bytes<<<bytes / 256, 256>>>(a, b);
  planted::three_times([&] { byte_loads<<<bytes / 256 / PER_THREAD, 256>>>(a, b, out); });
  const size_t one = (size_t(1) << 25) + 21;
  return planted::verdict(planted::fetched_one(out, one) == (unsigned char)(byte_of(one) + byte_of(one + 7)));
}
