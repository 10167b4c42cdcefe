// What every planted kernel shares: checked CUDA calls, device memory with known contents, three launches.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call) planted::check((call), #call, __LINE__)

namespace planted {

inline void check(cudaError_t status, const char* call, int line) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(status));
  std::exit(2);
}

__host__ __device__ inline unsigned hashed(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// The contents of every float array: in [0, 1), the same on the host and on the device.
__host__ __device__ inline float value(size_t i) { return float(hashed(unsigned(i)) >> 8) / 16777216.0f; }

template <typename T>
__global__ void fill_values(T* out, size_t count) {
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += stride) out[i] = T(value(i));
}

template <typename T>
T* zeros(size_t count) {
  T* memory = nullptr;
  CHECK(cudaMalloc(&memory, count * sizeof(T)));
  CHECK(cudaMemset(memory, 0, count * sizeof(T)));
  return memory;
}

template <typename T>
T* values(size_t count) {
  T* memory = zeros<T>(count);
  fill_values<<<1024, 256>>>(memory, count);
  CHECK(cudaGetLastError());
  return memory;
}

template <typename T>
T* copied(const std::vector<T>& host) {
  T* memory = zeros<T>(host.size());
  CHECK(cudaMemcpy(memory, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

template <typename T>
std::vector<T> fetched(const T* memory, size_t count) {
  std::vector<T> host(count);
  CHECK(cudaMemcpy(host.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

template <typename T>
T fetched_one(const T* memory, size_t index) {
  return fetched(memory + index, 1)[0];
}

inline int multiprocessors() {
  int count = 0;
  CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

// The profiler takes the second launch: the first may load code.
template <typename Launch>
void three_times(Launch launch) {
  for (int i = 0; i < 3; ++i) launch();
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

inline bool near(double found, double expected, double relative = 1e-4) {
  return std::fabs(found - expected) <= relative * std::fabs(expected) + 1e-6;
}

// The exit code of a program whose result is right, or not.
inline int verdict(bool right) {
  if (!right) std::fprintf(stderr, "the kernel's result is wrong\n");
  return right ? 0 : 1;
}

}  // namespace planted
