// A transpose that reads down the columns: every lane of a warp loads from a 32-byte sector of its own.
#include "planted.h"

constexpr int SIZE = 8192;

__global__ void uncoalesced_transpose(const float* __restrict__ in, float* __restrict__ out) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  out[size_t(row) * SIZE + column] = in[size_t(column) * SIZE + row];
}

int main() {
  const float* in = planted::values<float>(size_t(SIZE) * SIZE);
  float* out = planted::zeros<float>(size_t(SIZE) * SIZE);
  planted::three_times([&] { uncoalesced_transpose<<<dim3(SIZE / 256, SIZE), 256>>>(in, out); });
  const size_t row = 4097, column = 77;
  return planted::verdict(planted::fetched_one(out, row * SIZE + column) == planted::value(column * SIZE + row));
}
