// Held out: one thread sums a column. The loads are coalesced, but there are only as many threads as columns.
#include "planted.h"

constexpr int ROWS = 2048, COLUMNS = 4096;

__global__ void column_sums(const float* __restrict__ in, float* __restrict__ sums) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int row = 0; row < ROWS; ++row) sum += in[size_t(row) * COLUMNS + column];
  sums[column] = sum;
}

int main() {
  const float* in = planted::values<float>(size_t(ROWS) * COLUMNS);
  float* sums = planted::zeros<float>(COLUMNS);
  planted::three_times([&] { column_sums<<<COLUMNS / 256, 256>>>(in, sums); });
  double expected = 0;
  for (size_t row = 0; row < ROWS; ++row) expected += planted::value(row * COLUMNS + 5);
  return planted::verdict(planted::near(planted::fetched_one(sums, 5), expected));
}
