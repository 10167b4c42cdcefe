// Held out: a sparse matrix times a vector, one thread a row. Rows differ in length, and each lane reads its own.
#include "planted.h"

constexpr unsigned ROWS = 1u << 18;

__host__ __device__ inline unsigned length_of(unsigned row) { return planted::hashed(row) % 64 == 0 ? 512 : 24; }

__host__ __device__ inline unsigned column_of(unsigned entry) { return planted::hashed(entry) % ROWS; }

__global__ void sparse_rows(const unsigned* __restrict__ starts, const unsigned* __restrict__ columns,
                            const float* __restrict__ entries, const float* __restrict__ x, float* __restrict__ y) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (unsigned i = starts[row]; i < starts[row + 1]; ++i) sum = fmaf(entries[i], x[columns[i]], sum);
  y[row] = sum;
}

int main() {
  std::vector<unsigned> starts(ROWS + 1, 0);
  for (unsigned row = 0; row < ROWS; ++row) starts[row + 1] = starts[row] + length_of(row);
  std::vector<unsigned> columns(starts[ROWS]);
  for (unsigned i = 0; i < starts[ROWS]; ++i) columns[i] = column_of(i);
  const unsigned* device_starts = planted::copied(starts);
  const unsigned* device_columns = planted::copied(columns);
  const float* entries = planted::values<float>(starts[ROWS]);
  const float* x = planted::values<float>(ROWS);
  float* y = planted::zeros<float>(ROWS);
  planted::three_times(
      [&] { sparse_rows<<<ROWS / 256, 256>>>(device_starts, device_columns, entries, x, y); });
  double expected = 0;
  for (unsigned i = starts[3]; i < starts[4]; ++i) expected += planted::value(i) * planted::value(column_of(i));
  return planted::verdict(planted::near(planted::fetched_one(y, 3), expected));
}
