// Divisions of integers by divisors that change: each converts to float, takes a reciprocal and converts back.
#include "planted.h"

constexpr int CHAINS = 4, STEPS = 64;

__host__ __device__ inline unsigned divided(unsigned value) {
  for (unsigned step = 0; step < STEPS; ++step) value = (value + 0x9e3779b9u) / (step + (value & 15u) + 3u);
  return value;
}

__global__ void integer_division(unsigned* __restrict__ out) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value[CHAINS], sum = 0;
#pragma unroll
  for (int j = 0; j < CHAINS; ++j) value[j] = thread + unsigned(j);
#pragma unroll 1
  for (unsigned step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int j = 0; j < CHAINS; ++j) value[j] = (value[j] + 0x9e3779b9u) / (step + (value[j] & 15u) + 3u);
  }
#pragma unroll
  for (int j = 0; j < CHAINS; ++j) sum += value[j];
  out[thread] = sum;
}

int main() {
  const int blocks = planted::multiprocessors() * 8 * 2, threads = blocks * 256;
  unsigned* out = planted::zeros<unsigned>(threads);
  planted::three_times([&] { integer_division<<<blocks, 256>>>(out); });
  unsigned expected = 0;
  for (unsigned j = 0; j < CHAINS; ++j) expected += divided(300 + j);
  return planted::verdict(planted::fetched_one(out, 300) == expected);
}
