// Sixteen launches in a row, each with too little work to last as long as its own start.
#include "planted.h"

constexpr int COUNT = 1 << 16, LAUNCHES = 16;

__global__ void launch_bound(float* x, float slope, float offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = fmaf(x[i], slope, offset);
}

int main() {
  float* x = planted::values<float>(COUNT);
  planted::three_times([&] {
    for (int i = 0; i < LAUNCHES; ++i) launch_bound<<<COUNT / 256, 256>>>(x, 0.5f, 1.0f);
  });
  return planted::verdict(planted::near(planted::fetched_one(x, 9), 2.0));
}
