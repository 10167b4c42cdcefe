"""RMSNorm backward, two launches: rows come through a ring of bulk copies, so that no register waits for memory.

Hypothesis: Triton's pipeliner keeps a row's fragments in registers over the sum (101 and more at 4096 columns).
Here one thread asks the copy engine for whole rows (cp.async.bulk on an mbarrier), rows stay packed in shared
memory until their last use, and only the weight and the sum of dy * n live in registers: 60 at 4096 columns. The
ring takes what a multiprocessor has: 96 KiB a block, two blocks, one row of it in use and the others under way. A
block has one barrier a row: the one of its sum also says that the row before is free to be filled again. Rows of
up to 256 columns go to groups of lanes instead, four rows each at a time.
Predicted: 16384x4096 in 98 us, 8192x8192 in 98 us, 131072x128 in 28 us; 2 % less than Triton's 04.
Metric: dram__throughput.avg.pct_of_peak_sustained_elapsed above 90; UBLKCP in SASS, LDG only for rstd.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

SOURCE = r"""
#include <cuda_bf16.h>

using u32 = unsigned;
using u64 = unsigned long long;

template <typename T> struct alignas(16) Pack {
  static constexpr int N = 16 / sizeof(T);
  T at[N];
};

__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T> __device__ __forceinline__ T narrow(float x);
template <> __device__ __forceinline__ float narrow<float>(float x) { return x; }
template <> __device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

__device__ __forceinline__ u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }

__device__ __forceinline__ void expect(u64* barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void bulk_copy(void* to, const void* from, u32 bytes, u64* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

__device__ __forceinline__ void wait(u64* barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\nbra again;\nover:\n}" ::"r"(
          shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// Columns first to first + N of a row, or as many as there are; zero beyond.
template <typename T, bool WIDE> __device__ __forceinline__ Pack<T> load(const T* row, int first, int cols) {
  Pack<T> found;
  if constexpr (WIDE) {
    if (first < cols) return *reinterpret_cast<const Pack<T>*>(row + first);
  }
  for (int k = 0; k < Pack<T>::N; ++k) found.at[k] = !WIDE && first + k < cols ? row[first + k] : narrow<T>(0.0f);
  return found;
}

template <typename T, bool WIDE>
__device__ __forceinline__ void store(T* row, int first, int cols, const Pack<T>& values) {
  if constexpr (WIDE) {
    if (first < cols) __stcs(reinterpret_cast<uint4*>(row + first), *reinterpret_cast<const uint4*>(&values));
  } else {
    for (int k = 0; k < Pack<T>::N; ++k)
      if (first + k < cols) row[first + k] = values.at[k];
  }
}

// A block a row. Thread t has the packs t, t + THREADS, ...: PACKS of them.
template <typename T, int THREADS, int PACKS, bool WIDE>
__global__ void __launch_bounds__(THREADS)
rows(const T* x, const T* dy, const T* weight, const float* rstd, const T* dresidual, T* dx, float* partial,
     int count, int cols, int stages) {
  constexpr int N = Pack<T>::N, WARPS = THREADS / 32;
  extern __shared__ __align__(128) unsigned char ring[];
  __shared__ __align__(8) u64 full[8];
  __shared__ float sums[2][WARPS];
  const u32 bytes = cols * sizeof(T);
  const u32 padded = (bytes + 127) / 128 * 128;
  const int step = gridDim.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  auto fetch = [&](int row, int stage) {
    expect(&full[stage], 2 * bytes);
    unsigned char* to = ring + (u64)stage * 2 * padded;
    bulk_copy(to, x + (u64)row * cols, bytes, &full[stage]);
    bulk_copy(to + padded, dy + (u64)row * cols, bytes, &full[stage]);
  };
  if constexpr (WIDE) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < stages; ++s)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[s])) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0)
      for (int s = 0; s < stages; ++s)
        if (blockIdx.x + (long long)s * step < count) fetch(blockIdx.x + s * step, s);
  }

  Pack<T> scale[PACKS];
  float dw[PACKS][N];
#pragma unroll
  for (int p = 0; p < PACKS; ++p) {
    scale[p] = load<T, WIDE>(weight, (p * THREADS + threadIdx.x) * N, cols);
#pragma unroll
    for (int k = 0; k < N; ++k) dw[p][k] = 0.0f;
  }

  int stage = 0, turn = 0;
  u32 parity = 0;
  float next = blockIdx.x < count ? rstd[blockIdx.x] : 0.0f;
  for (int row = blockIdx.x; row < count; row += step) {
    const float r = next;
    if (row + (long long)step < count) next = rstd[row + step];
    const T* own_x = x + (u64)row * cols;
    const T* own_dy = dy + (u64)row * cols;
    if constexpr (WIDE) {
      wait(&full[stage], parity);
      own_x = reinterpret_cast<const T*>(ring + (u64)stage * 2 * padded);
      own_dy = reinterpret_cast<const T*>(ring + (u64)stage * 2 * padded + padded);
    }
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      const int first = (p * THREADS + threadIdx.x) * N;
      const Pack<T> a = load<T, WIDE>(own_x, first, cols), b = load<T, WIDE>(own_dy, first, cols);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float term = wide(b.at[k]) * (wide(a.at[k]) * r);
        dw[p][k] += term;
        sum += term * wide(scale[p].at[k]);
      }
    }
#pragma unroll
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) sums[turn][warp] = sum;
    __syncthreads();  // and all are done with the row before
    if constexpr (WIDE) {
      const long long ahead = row + (long long)(stages - 1) * step;
      if (threadIdx.x == 0 && row != (int)blockIdx.x && ahead < count)
        fetch(ahead, stage ? stage - 1 : stages - 1);
    }
    float mean = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) mean += sums[turn][w];
    mean /= cols;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      const int first = (p * THREADS + threadIdx.x) * N;
      const Pack<T> a = load<T, WIDE>(own_x, first, cols), b = load<T, WIDE>(own_dy, first, cols);
      Pack<T> more, result;
      if (dresidual) more = load<T, WIDE>(dresidual + (u64)row * cols, first, cols);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float d = r * (wide(b.at[k]) * wide(scale[p].at[k]) - wide(a.at[k]) * r * mean);
        if (dresidual) d += wide(more.at[k]);
        result.at[k] = narrow<T>(d);
      }
      store<T, WIDE>(dx + (u64)row * cols, first, cols, result);
    }
    turn ^= 1;
    if (++stage == stages) stage = 0, parity ^= 1;
  }
#pragma unroll
  for (int p = 0; p < PACKS; ++p)
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int column = (p * THREADS + threadIdx.x) * N + k;
      if (column < cols) partial[(u64)blockIdx.x * cols + column] = dw[p][k];
    }
}

// LANES lanes a row, one pack each; AT_ONCE rows under way.
template <typename T, int LANES>
__global__ void __launch_bounds__(256)
short_rows(const T* x, const T* dy, const T* weight, const float* rstd, const T* dresidual, T* dx, float* partial,
           int count, int cols) {
  constexpr int N = Pack<T>::N, GROUPS = 256 / LANES, AT_ONCE = 4;
  __shared__ float sums[GROUPS][LANES * N];
  const int group = threadIdx.x / LANES, first = threadIdx.x % LANES * N;
  const Pack<T> scale = load<T, true>(weight, first, cols);
  float dw[N] = {};
  for (long long start = (long long)blockIdx.x * GROUPS * AT_ONCE; start < count;
       start += (long long)gridDim.x * GROUPS * AT_ONCE) {
    Pack<T> a[AT_ONCE], b[AT_ONCE];
    float r[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const long long row = start + i * GROUPS + group;
      const int some = row < count ? cols : 0;
      a[i] = load<T, true>(x + row * cols, first, some);
      b[i] = load<T, true>(dy + row * cols, first, some);
      r[i] = row < count ? rstd[row] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const long long row = start + i * GROUPS + group;
      float sum = 0.0f;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float term = wide(b[i].at[k]) * (wide(a[i].at[k]) * r[i]);
        dw[k] += term;
        sum += term * wide(scale.at[k]);
      }
#pragma unroll
      for (int o = LANES / 2; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
      const float mean = sum / cols;
      const int some = row < count ? cols : 0;
      Pack<T> more, result;
      if (dresidual) more = load<T, true>(dresidual + row * cols, first, some);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float d = r[i] * (wide(b[i].at[k]) * wide(scale.at[k]) - wide(a[i].at[k]) * r[i] * mean);
        if (dresidual) d += wide(more.at[k]);
        result.at[k] = narrow<T>(d);
      }
      store<T, true>(dx + row * cols, first, some, result);
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) sums[group][first + k] = dw[k];
  __syncthreads();
  for (int column = threadIdx.x; column < cols; column += 256) {
    float total = 0.0f;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) total += sums[g][column];
    partial[(u64)blockIdx.x * cols + column] = total;
  }
}

// 32 columns a block, always added up in the same order.
template <typename T>
__global__ void __launch_bounds__(1024) columns(const float* partial, T* dw, int count, int cols) {
  __shared__ float sums[32][33];
  const int lane = threadIdx.x % 32, part = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
  float total = 0.0f;
  if (column < cols) {
#pragma unroll 8
    for (int row = part; row < count; row += 32) total += partial[(u64)row * cols + column];
  }
  sums[part][lane] = total;
  __syncthreads();
  if (part == 0 && column < cols) {
    float all = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i) all += sums[i][lane];
    dw[column] = narrow<T>(all);
  }
}
"""
TYPES = {torch.float32: "float", torch.bfloat16: "__nv_bfloat16"}
SHORT = 256
RING = 96 * 1024
"""Bytes a block; two blocks fit a multiprocessor."""
LARGEST_RING = 224 * 1024
MOST_STAGES = 8


@functools.cache
def compiled(name: str):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if name.startswith("rows"):
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        status, *_ = driver.cuKernelSetAttribute(limit, LARGEST_RING, kernel.handle, 0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{name}: {status}")
    return kernel


def row_bytes(x: torch.Tensor) -> int:
    """Of a row of x and of dy in the ring."""
    return 2 * (-(-x.shape[1] * x.element_size() // 128) * 128)


def fitted(x: torch.Tensor, wide: bool) -> tuple[int, int, int, int, int]:
    """Threads, packs a thread, stages, shared bytes and blocks a multiprocessor for a block a row."""
    cols, size = x.shape[1], x.element_size()
    packs = -(-cols * size // 16)
    threads = 256 if packs <= 1024 else 512
    each = 1 << max(0, -(-packs // threads) - 1).bit_length()
    row = row_bytes(x)
    ring = RING if 3 * row <= RING else LARGEST_RING
    stages = min(MOST_STAGES, ring // row) if wide else 1
    return threads, each, stages, stages * row if wide else 0, 2 if ring == RING else 1


def run(x, dy, weight, rstd, dresidual):
    rows, cols = x.shape
    kind, lanes = TYPES[x.dtype], 16 // x.element_size()
    wide = cols % lanes == 0 and all(t.data_ptr() % 16 == 0 for t in (x, dy, weight, dresidual))
    wide = wide and 2 * row_bytes(x) <= LARGEST_RING  # a row in use, and one under way
    many = torch.cuda.get_device_properties(x.device).multi_processor_count
    dx, dw = torch.empty_like(x), torch.empty_like(weight)
    more = dresidual.data_ptr() if dresidual.shape[0] else 0
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    threads, each, stages, shared, beside = fitted(x, wide)
    short = wide and cols <= SHORT and cols <= 32 * lanes
    blocks = min(many * (2 if short else beside), -(-rows // 2))  # partial sums: no more memory than dx and dw
    partial = torch.empty((blocks, cols), dtype=torch.float32, device=x.device)
    given = [t.data_ptr() for t in (x, dy, weight, rstd)] + [more, dx.data_ptr(), partial.data_ptr()]
    given += [numpy.int32(rows), numpy.int32(cols)]
    if short:
        across = 1 << max(0, -(-cols // lanes) - 1).bit_length()
        kernel = compiled(f"short_rows<{kind}, {across}>")
        launch(stream, LaunchConfig(grid=(blocks,), block=(256,)), kernel, *given)
    else:
        kernel = compiled(f"rows<{kind}, {threads}, {each}, {str(wide).lower()}>")
        config = LaunchConfig(grid=(blocks,), block=(threads,), shmem_size=shared)
        launch(stream, config, kernel, *given, numpy.int32(stages))
    config = LaunchConfig(grid=(-(-cols // 32),), block=(1024,))
    kernel = compiled(f"columns<{kind}>")
    launch(stream, config, kernel, partial.data_ptr(), dw.data_ptr(), numpy.int32(blocks), numpy.int32(cols))
    return dx, dw
