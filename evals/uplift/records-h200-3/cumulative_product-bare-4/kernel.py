"""cumulative_product: y[r, c] = x[r, 0] * x[r, 1] * ... * x[r, c]

Four ways to hold a row:
  rows_kernel   a group of G lanes holds a whole row in registers
  tile_kernel   MODE 0: a block holds a whole row
                MODE 1: a cluster of blocks holds a whole row and exchanges tile products through distributed shared memory
                MODE 2: any length; tile products are published in global memory (decoupled look-back). Their flags are
                        cleared in every call by zero_kernel, which overlaps the loads (programmatic dependent launch)
                MODE 3: few elements; reduce_kernel finds the tile products while the tiles load
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions
from cuda.pathfinder import find_nvidia_header_directory

SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned long long u64;

__device__ __forceinline__ float to_float(float a) { return a; }
__device__ __forceinline__ float to_float(__nv_bfloat16 a) { return __bfloat162float(a); }
__device__ __forceinline__ float to_float(__half a) { return __half2float(a); }
__device__ __forceinline__ void from_float(float& d, float a) { d = a; }
__device__ __forceinline__ void from_float(__nv_bfloat16& d, float a) { d = __float2bfloat16_rn(a); }
__device__ __forceinline__ void from_float(__half& d, float a) { d = __float2half_rn(a); }

template <int BYTES> struct Raw;
template <> struct Raw<16> { typedef uint4 type; };
template <> struct Raw<8> { typedef uint2 type; };
template <> struct Raw<4> { typedef unsigned int type; };
template <> struct Raw<2> { typedef unsigned short type; };

template <typename T, int VEC> union Pack {
  typename Raw<sizeof(T) * VEC>::type raw;
  T v[VEC];
  __device__ Pack() {}
};

// volatile, for the compiler must not move them before griddepcontrol.wait
#define RAW_LOADS(NAME, KIND)                                                                     \
  __device__ __forceinline__ void NAME(uint4& a, const void* p) {                                 \
    asm volatile("ld.global" KIND ".v4.u32 {%0, %1, %2, %3}, [%4];"                               \
                 : "=r"(a.x), "=r"(a.y), "=r"(a.z), "=r"(a.w) : "l"(p) : "memory");               \
  }                                                                                               \
  __device__ __forceinline__ void NAME(uint2& a, const void* p) {                                 \
    asm volatile("ld.global" KIND ".v2.u32 {%0, %1}, [%2];" : "=r"(a.x), "=r"(a.y) : "l"(p) : "memory"); \
  }                                                                                               \
  __device__ __forceinline__ void NAME(unsigned int& a, const void* p) {                          \
    asm volatile("ld.global" KIND ".u32 %0, [%1];" : "=r"(a) : "l"(p) : "memory");                \
  }                                                                                               \
  __device__ __forceinline__ void NAME(unsigned short& a, const void* p) {                        \
    asm volatile("ld.global" KIND ".u16 %0, [%1];" : "=h"(a) : "l"(p) : "memory");                \
  }
RAW_LOADS(raw_load, "")
RAW_LOADS(raw_load_cs, ".cs")
RAW_LOADS(raw_load_skip, ".L1::no_allocate")

// HINT: 1 streaming stores, 2 streaming loads, 4 loads that skip L1
template <int HINT, typename T, int VEC>
__device__ __forceinline__ void load(float (&v)[VEC], const T* p, bool ok) {
  if (ok) {
    Pack<T, VEC> a;
    if (HINT & 2) raw_load_cs(a.raw, p);
    else if (HINT & 4) raw_load_skip(a.raw, p);
    else raw_load(a.raw, p);
#pragma unroll
    for (int i = 0; i < VEC; i++) v[i] = to_float(a.v[i]);
  } else {
#pragma unroll
    for (int i = 0; i < VEC; i++) v[i] = 1.0f;
  }
}

template <int HINT, typename T, int VEC>
__device__ __forceinline__ void store(const float (&v)[VEC], float f, T* p, bool ok) {
  if (ok) {
    Pack<T, VEC> a;
#pragma unroll
    for (int i = 0; i < VEC; i++) from_float(a.v[i], v[i] * f);
    typedef typename Raw<sizeof(T) * VEC>::type R;
    if (HINT & 1) __stcs(reinterpret_cast<R*>(p), a.raw);
    else *reinterpret_cast<R*>(p) = a.raw;
  }
}

// v becomes the inclusive products of the lane; returns the exclusive product over the lanes, and the total
template <int VEC, int G>
__device__ __forceinline__ float scan_chunk(float (&v)[VEC], int lane, float& total) {
#pragma unroll
  for (int i = 1; i < VEC; i++) v[i] *= v[i - 1];
  float p = v[VEC - 1];
#pragma unroll
  for (int d = 1; d < G; d *= 2) {
    float q = __shfl_up_sync(0xffffffffu, p, d, G);
    if (lane >= d) p *= q;
  }
  total = __shfl_sync(0xffffffffu, p, G - 1, G);
  float e = __shfl_up_sync(0xffffffffu, p, 1, G);
  return lane == 0 ? 1.0f : e;
}

// Programmatic dependent launch: the first kernel of a call may be launched while the kernel before it in the stream still
// runs. It touches no memory before `dependency_wait`, which returns when that kernel has completed and its writes are visible.
__device__ __forceinline__ void dependency_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void dependents_go() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

template <typename T, int VEC, int G, int K, int HINT>
__global__ void __launch_bounds__(256) rows_kernel(const T* __restrict__ x, T* __restrict__ y, long long rows, int cols) {
  const int lane = threadIdx.x % G;
  const long long row = blockIdx.x * (long long)(256 / G) + threadIdx.x / G;
  const bool ok = row < rows;
  dependency_wait();
  dependents_go();
  x += row * cols;
  y += row * cols;
  float v[K][VEC];
#pragma unroll
  for (int k = 0; k < K; k++) load<HINT, T, VEC>(v[k], x + (k * G + lane) * VEC, ok && (k * G + lane) * VEC < cols);
  float carry = 1.0f;
#pragma unroll
  for (int k = 0; k < K; k++) {
    float total, e = scan_chunk<VEC, G>(v[k], lane, total);
    store<HINT, T, VEC>(v[k], e * carry, y + (k * G + lane) * VEC, ok && (k * G + lane) * VEC < cols);
    carry *= total;
  }
}

__global__ void __launch_bounds__(1024) zero_kernel(u64* flags, int n) {
  dependency_wait();
  dependents_go();
  for (int i = blockIdx.x * 1024 + threadIdx.x; i < n; i += gridDim.x * 1024) flags[i] = 0;
}

__device__ __forceinline__ u64 flag_load(const u64* p) {
  u64 a;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(a) : "l"(p) : "memory");
  return a;
}
__device__ __forceinline__ void flag_store(u64* p, unsigned state, float value) {
  u64 a = ((u64)state << 32) | __float_as_uint(value);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(a) : "memory");
}
__device__ __forceinline__ float warp_product(float a) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) a *= __shfl_xor_sync(0xffffffffu, a, d);
  return a;
}

template <typename T, int VEC, int K, int THREADS, int HINT>
__global__ void __launch_bounds__(THREADS) reduce_kernel(const T* __restrict__ x, long long cols, int tiles, float* totals) {
  __shared__ float warp_total[THREADS / 32];
  dependency_wait();
  dependents_go();
  const int row = blockIdx.x / tiles, tile = blockIdx.x - row * tiles;
  const long long start = tile * (long long)(THREADS * K * VEC) + threadIdx.x * VEC;
  const long long rest = cols - start;
  const int left = rest < 0 ? 0 : rest > (1 << 30) ? (1 << 30) : (int)rest;
  x += row * cols + start;
  float v[K][VEC];
#pragma unroll
  for (int k = 0; k < K; k++) load<HINT, T, VEC>(v[k], x + k * THREADS * VEC, k * THREADS * VEC < left);
  float p = 1.0f;
#pragma unroll
  for (int k = 0; k < K; k++) {
    float q = 1.0f;
#pragma unroll
    for (int i = 0; i < VEC; i++) q *= v[k][i];
    p *= q;
  }
  p = warp_product(p);
  if (threadIdx.x % 32 == 0) warp_total[threadIdx.x / 32] = p;
  __syncthreads();
  if (threadIdx.x < 32) {
    p = warp_product(threadIdx.x < THREADS / 32 ? warp_total[threadIdx.x] : 1.0f);
    if (threadIdx.x == 0) totals[blockIdx.x] = p;
  }
}

template <typename T, int VEC, int K, int THREADS, int MODE, int J, int HINT>
__global__ void __launch_bounds__(THREADS) tile_kernel(const T* __restrict__ x, T* __restrict__ y, long long cols, int tiles,
                                                       u64* flags) {
  constexpr int WARPS = THREADS / 32;
  __shared__ float warp_total[WARPS];
  __shared__ float block_total[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = MODE == 0 ? blockIdx.x : blockIdx.x / tiles;
  const int tile = MODE == 0 ? 0 : blockIdx.x - row * tiles;
  if (MODE == 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");

  const long long start = tile * (long long)(THREADS * K * VEC) + (warp * K * 32 + lane) * VEC;
  x += row * cols + start;
  y += row * cols + start;
  const long long rest = cols - start;
  const int left = rest < 0 ? 0 : rest > (1 << 30) ? (1 << 30) : (int)rest;
  if (MODE < 2) dependency_wait();
  dependents_go();
  float v[K][VEC], e[K];
#pragma unroll
  for (int k = 0; k < K; k++) load<HINT, T, VEC>(v[k], x + k * 32 * VEC, k * 32 * VEC < left);
  float carry = 1.0f;
#pragma unroll
  for (int k = 0; k < K; k++) {
    float total;
    e[k] = scan_chunk<VEC, 32>(v[k], lane, total) * carry;
    carry *= total;
  }
  if (lane == 0) warp_total[warp] = carry;
  if (MODE == 1) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  __syncthreads();
  float factor = lane < warp ? warp_total[lane] : 1.0f;
  if (MODE == 1) {
    if (warp == WARPS - 1) {
      float all = warp_product(factor) * carry;
      if (lane > tile && lane < tiles) {
        unsigned mine = (unsigned)__cvta_generic_to_shared(&block_total[tile]), theirs;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(mine), "r"(lane));
        asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(theirs), "f"(all) : "memory");
      }
      __syncwarp();
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    if (lane < tile) factor *= block_total[lane];
  }
  if (MODE == 3) {
    dependency_wait();
    const float* totals = reinterpret_cast<const float*>(flags) + (blockIdx.x - tile);
    float f[J];
#pragma unroll
    for (int j = 0; j < J; j++) {
      unsigned a = 0x3f800000u;
      if (lane + 32 * j < tile) raw_load(a, totals + lane + 32 * j);
      f[j] = __uint_as_float(a);
    }
#pragma unroll
    for (int j = 0; j < J; j++) factor *= f[j];
  }
  factor = warp_product(factor);
  if (MODE == 2) {
    if (warp == WARPS - 1) {
      dependency_wait();
      const float all = factor * carry;
      u64* flag = flags + blockIdx.x;
      if (lane == 0) flag_store(flag, tile == 0 ? 2 : 1, all);
      float before = 1.0f;
      if (tile > 0) {
        int at = tile - 1 - lane;  // this lane's nearest tile
        bool done = false;
        while (!done) {
          u64 f[J];
          bool wait = true;
          while (wait) {
            wait = false;
#pragma unroll
            for (int j = 0; j < J; j++) {
              const int t = at - 32 * j;
              f[j] = t >= 0 ? flag_load(flags + (blockIdx.x - tile + t)) : ((u64)2 << 32) | 0x3f800000u;
            }
#pragma unroll
            for (int j = 0; j < J; j++) wait |= (f[j] >> 32) == 0;
            wait = __any_sync(0xffffffffu, wait);
          }
          float part = 1.0f;
#pragma unroll
          for (int j = 0; j < J; j++) {
            const unsigned known = __ballot_sync(0xffffffffu, (f[j] >> 32) == 2);
            const int last = known ? __ffs(known) - 1 : 31;
            if (!done && lane <= last) part *= __uint_as_float((unsigned)f[j]);
            done = done || known != 0;
          }
          before *= warp_product(part);
          at -= 32 * J;
        }
        if (lane == 0) flag_store(flag, 2, before * all);
      }
      if (lane == 0) block_total[0] = before;
    }
    __syncthreads();
    factor *= block_total[0];
  }
#pragma unroll
  for (int k = 0; k < K; k++) store<HINT, T, VEC>(v[k], e[k] * factor, y + k * 32 * VEC, k * 32 * VEC < left);
}
"""
TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float32: "float", torch.float16: "__half"}


def build(names):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=tuple(names))


KERNELS = {}


def compiled(name):
    kernel = KERNELS.get(name)
    if kernel is None:
        kernel = KERNELS[name] = build((name,)).get_kernel(name)
    return kernel


OVERLAP = True


def start(name, blocks, threads, cluster, *arguments):
    """Launch on the current stream, overlapping the end of the kernel before it; arguments are (value, type)."""
    given = driver.CUlaunchConfig()
    given.gridDimX, given.gridDimY, given.gridDimZ = blocks, 1, 1
    given.blockDimX, given.blockDimY, given.blockDimZ = threads, 1, 1
    given.sharedMemBytes = 0
    given.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    attributes = []
    if OVERLAP:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    if cluster > 1:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = cluster, 1, 1
        attributes.append(attribute)
    given.attrs, given.numAttrs = attributes, len(attributes)
    function = driver.CUfunction(int(compiled(name).handle))
    if cluster > 8:
        wide = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        kernel = driver.CUkernel(int(compiled(name).handle))
        (error,) = driver.cuKernelSetAttribute(wide, 1, kernel, driver.CUdevice(torch.cuda.current_device()))
        if error != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{name}: {error}")
    values, types = zip(*arguments)
    (error,) = driver.cuLaunchKernelEx(given, function, (values, types), 0)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{name}: {error}")


POINTER, LONG, INT = ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int


def run_rows(x, y, vec, group, chunks, hint=1):
    rows, cols = x.shape
    name = f"rows_kernel<{TYPES[x.dtype]}, {vec}, {group}, {chunks}, {hint}>"
    blocks = -(-rows // (256 // group))
    start(name, blocks, 256, 1, (x.data_ptr(), POINTER), (y.data_ptr(), POINTER), (rows, LONG), (cols, INT))
    return y


def run_tiles(x, y, vec, chunks, threads, mode, window=4, hint=1, first=1024):
    rows, cols = x.shape
    name = f"tile_kernel<{TYPES[x.dtype]}, {vec}, {chunks}, {threads}, {mode}, {window}, {hint}>"
    tiles = -(-cols // (vec * chunks * threads))
    blocks = rows * tiles
    flags = 0
    if mode == 2:
        room = torch.empty(blocks, dtype=torch.int64, device=x.device)
        flags = room.data_ptr()
        start("zero_kernel", min(-(-blocks // 1024), 64), 1024, 1, (flags, POINTER), (blocks, INT))
    elif mode == 3:
        room = torch.empty(blocks, dtype=torch.float32, device=x.device)
        flags = room.data_ptr()
        first = min(first, chunks * threads)
        reduce = f"reduce_kernel<{TYPES[x.dtype]}, {vec}, {chunks * threads // first}, {first}, 0>"
        start(reduce, blocks, first, 1, (x.data_ptr(), POINTER), (cols, LONG), (tiles, INT), (flags, POINTER))
    start(name, blocks, threads, tiles if mode == 1 else 1,
          (x.data_ptr(), POINTER), (y.data_ptr(), POINTER), (cols, LONG), (tiles, INT), (flags, POINTER))
    return y


def power(n):
    return 1 << max(0, n - 1).bit_length()


@functools.cache
def plan(rows, cols, size, align):
    """(kernel, its parameters)"""
    vec = align // size
    packs = -(-cols // vec)
    if packs <= 128:
        wanted = power(packs)
        chunks = max(1, wanted // 32)
        return run_rows, (vec, wanted // chunks, chunks)
    most = min(16, 32 // vec)  # packs of a thread
    if packs <= 512 * most:
        for chunks in (4, 8, 16):
            for threads in (64, 128, 256, 512):
                if chunks <= most and packs <= threads * chunks and (rows >= 132 or packs <= 2048):
                    return run_tiles, (vec, chunks, threads, 0, 1, 3)
    small = rows * packs <= 128 * 256 * most
    if small and packs <= 8 * 512 * (most // 2) and rows >= 4:
        return run_tiles, (vec, most // 2, 512, 1, 1, 1)
    if packs <= 8 * 512 * most and rows >= 8:
        return run_tiles, (vec, most, 512, 1, 1, 5)
    if small:
        return run_tiles, (vec, most // 2, 256, 3, 8, 1, 256)
    return run_tiles, (vec, most, 512, 2, 4, 1)


def run(x):
    """Must return y.

    x: (rows, cols), the workload's type.
    y: (rows, cols), the workload's type.
    """
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, cols = x.shape
    if x.numel() == 0:
        return y
    size = x.element_size()
    align = 16
    while (cols * size) % align or x.data_ptr() % align:
        align //= 2
    call, given = plan(rows, cols, size, align)
    return call(x, y, *given)
