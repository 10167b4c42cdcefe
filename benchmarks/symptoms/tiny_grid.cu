// A sum over sixteen megabytes in eight blocks: all but eight multiprocessors have nothing to do.
#include "planted.h"

constexpr size_t COUNT = 1 << 22;
constexpr int BLOCKS = 8;

__global__ void tiny_grid(const float* __restrict__ in, float* __restrict__ sums) {
  const size_t threads = size_t(gridDim.x) * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (size_t i = thread; i < COUNT; i += threads) sum += in[i];
  sums[thread] = sum;
}

int main() {
  const float* in = planted::values<float>(COUNT);
  float* sums = planted::zeros<float>(BLOCKS * 256);
  planted::three_times([&] { tiny_grid<<<BLOCKS, 256>>>(in, sums); });
  double found = 0, expected = 0;
  for (float sum : planted::fetched(sums, BLOCKS * 256)) found += sum;
  for (size_t i = 0; i < COUNT; ++i) expected += planted::value(i);
  return planted::verdict(planted::near(found, expected));
}
