// Two warps a scheduler follow a list in shared memory: no conflicts, but each step waits for the one before.
#include "planted.h"

constexpr int STEPS = 4096;

__global__ void short_scoreboard(const int* __restrict__ in, int* __restrict__ out) {
  __shared__ int next[32 * 32];
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) next[i] = in[i];
  __syncthreads();
  const int lane = threadIdx.x & 31;
  int at = lane;
  for (int step = 0; step < STEPS; ++step) at = next[at];
  out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

int main() {
  std::vector<int> next(32 * 32);
  for (int i = 0; i < 32 * 32; ++i) next[i] = (i / 32 * 5 + 3) % 32 * 32 + i % 32;
  const int blocks = planted::multiprocessors();
  const int* in = planted::copied(next);
  int* out = planted::zeros<int>(blocks * 256);
  planted::three_times([&] { short_scoreboard<<<blocks, 256>>>(in, out); });
  int expected = 9;
  for (int step = 0; step < STEPS; ++step) expected = next[expected];
  return planted::verdict(planted::fetched_one(out, 9) == expected);
}
