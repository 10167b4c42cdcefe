// Every warp follows a list through memory, one 128-byte node after the other: all warps wait, nothing is busy.
#include "planted.h"

constexpr unsigned NODES = 1u << 21;
constexpr int STEPS = 64;

__host__ __device__ inline unsigned next_node(unsigned node) { return (node * 1664525u + 1013904223u) % NODES; }

__host__ __device__ inline unsigned first_node(unsigned warp) { return planted::hashed(warp) % NODES; }

__global__ void link(unsigned* nodes) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  nodes[i] = next_node(i / 32);
}

__global__ void long_scoreboard(const unsigned* __restrict__ nodes, unsigned* __restrict__ out) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned node = first_node(thread / 32);
  for (int step = 0; step < STEPS; ++step) node = nodes[node * 32 + threadIdx.x % 32];
  out[thread] = node;
}

int main() {
  const int blocks = planted::multiprocessors() * 8 * 2;
  unsigned* nodes = planted::zeros<unsigned>(size_t(NODES) * 32);
  unsigned* out = planted::zeros<unsigned>(blocks * 256);
  link<<<NODES * 32 / 256, 256>>>(nodes);
  planted::three_times([&] { long_scoreboard<<<blocks, 256>>>(nodes, out); });
  unsigned expected = first_node(40);
  for (int step = 0; step < STEPS; ++step) expected = next_node(expected);
  return planted::verdict(planted::fetched_one(out, 40 * 32 + 3) == expected);
}
