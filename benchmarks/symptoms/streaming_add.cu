// Control: the sum of two arrays of 256 megabytes, sixteen bytes a lane. Nothing is left but the memory itself.
#include "planted.h"

constexpr size_t COUNT = 16u << 20;

__global__ void streaming_add(const float4* __restrict__ a, const float4* __restrict__ b, float4* __restrict__ out) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  const float4 x = a[i], y = b[i];
  out[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

int main() {
  const float* a = planted::values<float>(COUNT * 4);
  const float* b = planted::values<float>(COUNT * 4);
  float* out = planted::zeros<float>(COUNT * 4);
  planted::three_times([&] {
    streaming_add<<<COUNT / 256, 256>>>(reinterpret_cast<const float4*>(a), reinterpret_cast<const float4*>(b),
                                        reinterpret_cast<float4*>(out));
  });
  return planted::verdict(planted::fetched_one(out, 12345678) == 2 * planted::value(12345678));
}
