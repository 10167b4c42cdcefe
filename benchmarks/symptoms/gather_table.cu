// Held out: a gather through a table of indices. The table is read well, what it points to is not.
#include "planted.h"

constexpr unsigned COUNT = 1u << 24;

__host__ __device__ inline unsigned index_of(unsigned i) { return (i * 40503u + 977u) % COUNT; }

__global__ void fill_table(unsigned* table) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  table[i] = index_of(i);
}

__global__ void gather_table(const float* __restrict__ in, const unsigned* __restrict__ table,
                             float* __restrict__ out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[table[i]];
}

int main() {
  const float* in = planted::values<float>(COUNT);
  unsigned* table = planted::zeros<unsigned>(COUNT);
  float* out = planted::zeros<float>(COUNT);
  fill_table<<<COUNT / 256, 256>>>(table);
  planted::three_times([&] { gather_table<<<COUNT / 256, 256>>>(in, table, out); });
  return planted::verdict(planted::fetched_one(out, 54321) == planted::value(index_of(54321)));
}
