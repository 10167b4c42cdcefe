// What a HIP kernel needs of ROCm's header of this name, in clang's builtins alone, for machines without ROCm.
// Names and meanings are HIP's. Only device code for waves of 64 lanes is served: it is compiled, never run.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

#define WARPSMITH_BOUNDS_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define WARPSMITH_BOUNDS_2(threads, waves) WARPSMITH_BOUNDS_1(threads) __attribute__((amdgpu_waves_per_eu(waves)))
#define WARPSMITH_BOUNDS(first, second, name, ...) name
#define __launch_bounds__(...) \
  WARPSMITH_BOUNDS(__VA_ARGS__, WARPSMITH_BOUNDS_2, WARPSMITH_BOUNDS_1, 0)(__VA_ARGS__)
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

// Of the compiler, not of the host: no <cstdint> is included.
typedef __SIZE_TYPE__ size_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#define WARPSMITH_INDEX(name, x_value, y_value, z_value)                           \
  struct warpsmith_##name {                                                        \
    __device__ __forceinline__ unsigned get_x() const { return x_value; }          \
    __device__ __forceinline__ unsigned get_y() const { return y_value; }          \
    __device__ __forceinline__ unsigned get_z() const { return z_value; }          \
    __declspec(property(get = get_x)) unsigned x;                                  \
    __declspec(property(get = get_y)) unsigned y;                                  \
    __declspec(property(get = get_z)) unsigned z;                                  \
  };                                                                               \
  extern const __device__ __attribute__((weak)) warpsmith_##name name;
WARPSMITH_INDEX(threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
                __builtin_amdgcn_workitem_id_z())
WARPSMITH_INDEX(blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
                __builtin_amdgcn_workgroup_id_z())
WARPSMITH_INDEX(blockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
                __builtin_amdgcn_workgroup_size_z())
WARPSMITH_INDEX(gridDim, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
                __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
                __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())
#undef WARPSMITH_INDEX

static constexpr int warpSize = 64;

#define WARPSMITH_VECTORS(type, name)                                        \
  struct __attribute__((aligned(2 * sizeof(type)))) name##2 { type x, y; };  \
  struct name##3 { type x, y, z; };                                          \
  struct __attribute__((aligned(sizeof(type) < 8 ? 4 * sizeof(type) : 16))) name##4 { type x, y, z, w; };
WARPSMITH_VECTORS(float, float)
WARPSMITH_VECTORS(double, double)
WARPSMITH_VECTORS(int, int)
WARPSMITH_VECTORS(unsigned, uint)
#undef WARPSMITH_VECTORS

__device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ __forceinline__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__device__ __forceinline__ void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }

__device__ __forceinline__ unsigned __lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}

// Moves between lanes of 32-bit values; a lane beyond its group of `width` keeps its own value.
template <typename T>
__device__ __forceinline__ T warpsmith_from_lane(T value, int lane) {
  static_assert(sizeof(T) == 4, "the stand-in for HIP's header moves 32-bit values between lanes");
  return __builtin_bit_cast(T, __builtin_amdgcn_ds_bpermute(lane << 2, __builtin_bit_cast(int, value)));
}
template <typename T>
__device__ __forceinline__ T __shfl(T value, int source, int width = warpSize) {
  const int self = __lane_id();
  return warpsmith_from_lane(value, (source & (width - 1)) + (self & ~(width - 1)));
}
template <typename T>
__device__ __forceinline__ T __shfl_xor(T value, int mask, int width = warpSize) {
  const int self = __lane_id(), lane = self ^ mask;
  return warpsmith_from_lane(value, lane >= ((self + width) & ~(width - 1)) ? self : lane);
}
template <typename T>
__device__ __forceinline__ T __shfl_down(T value, unsigned delta, int width = warpSize) {
  const int self = __lane_id(), inside = (self & (width - 1)) + (int)delta;
  return warpsmith_from_lane(value, inside >= width ? self : self + (int)delta);
}
template <typename T>
__device__ __forceinline__ T __shfl_up(T value, unsigned delta, int width = warpSize) {
  const int self = __lane_id(), lane = self - (int)delta;
  return warpsmith_from_lane(value, lane < (self & ~(width - 1)) ? self : lane);
}

template <typename T>
__device__ __forceinline__ T atomicAdd(T* address, T value) {
  return __hip_atomic_fetch_add(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

__device__ __forceinline__ int __float_as_int(float value) { return __builtin_bit_cast(int, value); }
__device__ __forceinline__ float __int_as_float(int value) { return __builtin_bit_cast(float, value); }

// Single instructions of the hardware. ROCm's device library computes the names without underscores more exactly, in
// more instructions: there the figures of a kernel that uses them differ.
__device__ __forceinline__ float rsqrtf(float value) { return __builtin_amdgcn_rsqf(value); }
__device__ __forceinline__ float sqrtf(float value) { return __builtin_amdgcn_sqrtf(value); }
__device__ __forceinline__ float exp2f(float value) { return __builtin_amdgcn_exp2f(value); }
__device__ __forceinline__ float log2f(float value) { return __builtin_amdgcn_logf(value); }
__device__ __forceinline__ float __expf(float value) { return exp2f(value * 1.4426950408889634f); }
__device__ __forceinline__ float __logf(float value) { return log2f(value) * 0.6931471805599453f; }
__device__ __forceinline__ float expf(float value) { return __expf(value); }
__device__ __forceinline__ float logf(float value) { return __logf(value); }
__device__ __forceinline__ float fabsf(float value) { return __builtin_fabsf(value); }
__device__ __forceinline__ float fmaxf(float one, float other) { return __builtin_fmaxf(one, other); }
__device__ __forceinline__ float fminf(float one, float other) { return __builtin_fminf(one, other); }
__device__ __forceinline__ float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__device__ __forceinline__ int min(int one, int other) { return one < other ? one : other; }
__device__ __forceinline__ int max(int one, int other) { return one > other ? one : other; }
