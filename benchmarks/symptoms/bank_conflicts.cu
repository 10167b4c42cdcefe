// Each lane walks a row of a 32 by 32 tile: the lanes of a warp always meet in one bank of shared memory.
#include "planted.h"

constexpr int STEPS = 256;

__global__ void bank_conflicts(const int* __restrict__ in, int* __restrict__ out) {
  __shared__ int tile[32 * 32];
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) tile[i] = in[i];
  __syncthreads();
  const int lane = threadIdx.x & 31;
  int column = 0, sum = 0;
  for (int step = 0; step < STEPS; ++step) {
    column = (column + 1 + tile[lane * 32 + column]) & 31;  // the tile holds zeros, which the compiler cannot know
    sum += column;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
  const int blocks = planted::multiprocessors() * 8 * 2;
  const int* in = planted::zeros<int>(32 * 32);
  int* out = planted::zeros<int>(blocks * 256);
  planted::three_times([&] { bank_conflicts<<<blocks, 256>>>(in, out); });
  int expected = 0;
  for (int step = 1; step <= STEPS; ++step) expected += step & 31;
  return planted::verdict(planted::fetched_one(out, 1234) == expected);
}
