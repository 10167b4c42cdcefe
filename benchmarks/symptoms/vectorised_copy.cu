// Control: a copy of 256 megabytes, sixteen bytes a lane. Nothing is left but the memory itself.
#include "planted.h"

constexpr size_t COUNT = 16u << 20;

__global__ void vectorised_copy(const float4* __restrict__ in, float4* __restrict__ out) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  out[i] = in[i];
}

int main() {
  const float* in = planted::values<float>(COUNT * 4);
  float* out = planted::zeros<float>(COUNT * 4);
  planted::three_times([&] {
    vectorised_copy<<<COUNT / 256, 256>>>(reinterpret_cast<const float4*>(in), reinterpret_cast<float4*>(out));
  });
  return planted::verdict(planted::fetched_one(out, 12345678) == planted::value(12345678));
}
