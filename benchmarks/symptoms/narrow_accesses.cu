// Sums of bytes from a small table, one byte a lane: data is near and in order, but every load takes a whole turn.
#include "planted.h"

constexpr int PASSES = 4, CHUNKS = 16, LOADS = 32;
constexpr int BYTES = CHUNKS * LOADS * 32 + 256;

__host__ __device__ inline unsigned char byte_of(int i) { return planted::hashed(i) & 0xff; }

__global__ void fill_bytes(unsigned char* table) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  table[i] = byte_of(i);
}

__global__ void narrow_accesses(const unsigned char* __restrict__ table, unsigned* __restrict__ out) {
  unsigned sum = 0;
#pragma unroll 1
  for (int pass = 0; pass < PASSES; ++pass) {
    const unsigned char* from = table + threadIdx.x;
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; ++chunk, from += LOADS * 32) {
#pragma unroll
      for (int load = 0; load < LOADS; ++load) sum += from[load * 32];
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
  const int blocks = planted::multiprocessors() * 8 * 4;
  unsigned char* table = planted::zeros<unsigned char>(BYTES);
  unsigned* out = planted::zeros<unsigned>(blocks * 256);
  fill_bytes<<<BYTES / 256, 256>>>(table);
  planted::three_times([&] { narrow_accesses<<<blocks, 256>>>(table, out); });
  unsigned expected = 0;
  for (int load = 0; load < CHUNKS * LOADS; ++load) expected += byte_of(21 + load * 32);
  return planted::verdict(planted::fetched_one(out, 256 + 21) == PASSES * expected);
}
