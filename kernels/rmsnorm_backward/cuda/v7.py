"""RMSNorm backward as version 6, with a first launch that waits wherever it is set up early.

Hypothesis: version 6 was struck: its kernel of short rows is set up while the launch before it ends and never waits for
that, since its wait stands behind a return. Everything else of it is kept: two stages a group at 8192 columns, stores that
stream, and first launches that are set up early. Waiting costs short rows less than half a microsecond.
Predicted: 16384x4096 in 104 us, 8192x8192 in 102, 131072x128 in 27.8.
Metric: time_us at 8192x8192 from 106.
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

// 16 bytes of a row: N elements.
template <typename T> struct Pack;

template <> struct Pack<float> {
  static constexpr int N = 4;
  static __device__ __forceinline__ void open(const uint4& raw, float (&values)[N]) {
    values[0] = __uint_as_float(raw.x), values[1] = __uint_as_float(raw.y);
    values[2] = __uint_as_float(raw.z), values[3] = __uint_as_float(raw.w);
  }
  static __device__ __forceinline__ uint4 close(const float (&values)[N]) {
    return {__float_as_uint(values[0]), __float_as_uint(values[1]), __float_as_uint(values[2]),
            __float_as_uint(values[3])};
  }
};

template <> struct Pack<__nv_bfloat16> {
  static constexpr int N = 8;
  static __device__ __forceinline__ void two(u32 word, float& low, float& high) {
    low = __uint_as_float(word << 16), high = __uint_as_float(word & 0xffff0000u);
  }
  static __device__ __forceinline__ u32 join(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const u32*>(&both);
  }
  static __device__ __forceinline__ void open(const uint4& raw, float (&values)[N]) {
    two(raw.x, values[0], values[1]), two(raw.y, values[2], values[3]);
    two(raw.z, values[4], values[5]), two(raw.w, values[6], values[7]);
  }
  static __device__ __forceinline__ uint4 close(const float (&values)[N]) {
    return {join(values[0], values[1]), join(values[2], values[3]), join(values[4], values[5]),
            join(values[6], values[7])};
  }
};

__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T> __device__ __forceinline__ T narrow(float x);
template <> __device__ __forceinline__ float narrow<float>(float x) { return x; }
template <> __device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

__device__ __forceinline__ u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }

__device__ __forceinline__ void barrier_init(u64* barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barriers_ready() {  // for the copy engine too
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

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

__device__ __forceinline__ void arrive(u64* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__device__ __forceinline__ void wait_for_primary() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

constexpr int MOST_STAGES = 8;

// WARPS warps a row, GROUPS rows at a time. Thread t of a group has the packs t, t + THREADS, ...: PACKS of them.
template <typename T, int WARPS, int GROUPS, int PACKS, bool RESIDUAL>
__global__ void __launch_bounds__(32 * WARPS * GROUPS, 1)
rows(const T* x, const T* dy, const T* weight, const float* rstd, const T* dresidual, T* dx, float* partial,
     int count, int cols, int stages) {
  constexpr int N = Pack<T>::N, THREADS = 32 * WARPS, PARTS = RESIDUAL ? 3 : 2;
  extern __shared__ __align__(128) unsigned char ring[];
  __shared__ __align__(8) u64 full[GROUPS][MOST_STAGES];
  __shared__ __align__(8) u64 summed[GROUPS];
  __shared__ float sums[GROUPS][2][WARPS];
  const u32 bytes = cols * sizeof(T);
  const u32 padded = (bytes + 127) / 128 * 128;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = warp / WARPS, thread = threadIdx.x % THREADS, packs = cols / N;
  const int first = blockIdx.x + group * gridDim.x, step = GROUPS * gridDim.x;
  const int own = first < count ? (count - 1 - first) / step + 1 : 0;  // rows of this group
  unsigned char* mine = ring + group * stages * PARTS * padded;

  auto fetch = [&](int i, int stage) {
    const u64 at = (first + (u64)i * step) * cols;
    unsigned char* to = mine + stage * PARTS * padded;
    expect(&full[group][stage], PARTS * bytes);
    bulk_copy(to, x + at, bytes, &full[group][stage]);
    bulk_copy(to + padded, dy + at, bytes, &full[group][stage]);
    if constexpr (RESIDUAL) bulk_copy(to + 2 * padded, dresidual + at, bytes, &full[group][stage]);
  };
  auto there = [&](int p) { return p < PACKS - 1 || p * THREADS + thread < packs; };  // the last may not be
  auto pack = [&](const void* row, int p) {
    return there(p) ? static_cast<const uint4*>(row)[p * THREADS + thread] : uint4{0, 0, 0, 0};
  };
  auto rstd_of = [&](int i) { return i < own ? rstd[first + (u64)i * step] : 0.0f; };

  if (thread == 0) {
#pragma unroll 1
    for (int s = 0; s < stages; ++s) barrier_init(&full[group][s], 1);
    barrier_init(&summed[group], THREADS);
    barriers_ready();
  }
  launch_dependents();
  wait_for_primary();  // nothing that others wrote is read before, nor what they may still read written
  if (thread == 0) {
#pragma unroll 1
    for (int s = 0; s < stages && s < own; ++s) fetch(s, s);
  }
  __syncthreads();

  uint4 scale[PACKS];
  float dw[PACKS][N] = {};
#pragma unroll
  for (int p = 0; p < PACKS; ++p) scale[p] = pack(weight, p);
  float now = rstd_of(lane), later = rstd_of(lane + 32);  // of a row a lane
  const float inverse = 1.0f / cols;
  int stage = 0, turn = 0;
  u32 parity = 0;

  for (int i = 0; i < own; ++i) {
    if (i && i % 32 == 0) now = later, later = rstd_of(i + 32 + lane);
    const float r = __shfl_sync(~0u, now, i % 32);
    const unsigned char* from = mine + stage * PARTS * padded;
    wait(&full[group][stage], parity);
    float share[PACKS] = {};
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      float xs[N], ys[N], ws[N];
      Pack<T>::open(pack(from, p), xs), Pack<T>::open(pack(from + padded, p), ys), Pack<T>::open(scale[p], ws);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float product = xs[k] * ys[k];
        dw[p][k] += product * r;
        share[p] += product * ws[k];
      }
    }
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) sum += share[p];
#pragma unroll
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
    if constexpr (WARPS > 1) {
      if (lane == 0) sums[group][turn][warp % WARPS] = sum;
      arrive(&summed[group]);  // every thread for itself: of its reads of the sums and of the row before, too
      wait(&summed[group], turn);
      sum = 0.0f;
#pragma unroll
      for (int w = 0; w < WARPS; ++w) sum += sums[group][turn][w];
      turn ^= 1;
    } else {
      __syncwarp();
    }
    // The whole group is done with the row before.
    if (thread == 0 && i && i - 1 + stages < own) fetch(i - 1 + stages, stage ? stage - 1 : stages - 1);

    const float along = r * (r * sum * inverse) * r;
    uint4* to = reinterpret_cast<uint4*>(dx + (first + (u64)i * step) * cols);
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
      float xs[N], ys[N], ws[N], more[N] = {}, result[N];
      Pack<T>::open(pack(from, p), xs), Pack<T>::open(pack(from + padded, p), ys), Pack<T>::open(scale[p], ws);
      if constexpr (RESIDUAL) Pack<T>::open(pack(from + 2 * padded, p), more);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        result[k] = ys[k] * ws[k] * r - xs[k] * along;
        if constexpr (RESIDUAL) result[k] += more[k];
      }
      if (there(p)) __stcs(to + p * THREADS + thread, Pack<T>::close(result));
    }
    if (++stage == stages) stage = 0, parity ^= 1;
  }

  __syncthreads();  // all rows have been read: the ring is free
  float* own_partial = partial + (u64)blockIdx.x * cols;
  float* parts = reinterpret_cast<float*>(ring);
  float4* to = reinterpret_cast<float4*>(GROUPS > 1 ? parts + group * cols : own_partial);
#pragma unroll
  for (int p = 0; p < PACKS; ++p)
    if (there(p))
#pragma unroll
      for (int k = 0; k < N; k += 4)
        to[((p * THREADS + thread) * N + k) / 4] =
            make_float4(dw[p][k], dw[p][k + 1], dw[p][k + 2], dw[p][k + 3]);
  if constexpr (GROUPS > 1) {
    __syncthreads();
    for (int column = 4 * threadIdx.x; column < cols; column += 4 * blockDim.x) {
      float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
      for (int g = 0; g < GROUPS; ++g) {
        const float4 some = *reinterpret_cast<const float4*>(parts + g * cols + column);
        total.x += some.x, total.y += some.y, total.z += some.z, total.w += some.w;
      }
      *reinterpret_cast<float4*>(own_partial + column) = total;
    }
  }
}

// LANES lanes a row, one pack each; AT_ONCE rows under way.
template <typename T, int LANES>
__global__ void __launch_bounds__(256)
short_rows(const T* x, const T* dy, const T* weight, const float* rstd, const T* dresidual, T* dx, float* partial,
           int count, int cols) {
  constexpr int N = Pack<T>::N, GROUPS = 256 / LANES, AT_ONCE = 4;
  __shared__ float sums[GROUPS][LANES * N];
  const int group = threadIdx.x / LANES, place = threadIdx.x % LANES;
  launch_dependents();
  wait_for_primary();  // the last call's columns may still read what this one's partial sums go to
  auto pack = [&](const T* of, long long row) {
    const bool there = row < count && place * N < cols;
    return there ? reinterpret_cast<const uint4*>(of + row * cols)[place] : uint4{0, 0, 0, 0};
  };
  float ws[N], dw[N] = {};
  Pack<T>::open(pack(weight, 0), ws);
  for (long long start = (long long)blockIdx.x * GROUPS * AT_ONCE; start < count;
       start += (long long)gridDim.x * GROUPS * AT_ONCE) {
    uint4 a[AT_ONCE], b[AT_ONCE];
    float r[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const long long row = start + i * GROUPS + group;
      a[i] = pack(x, row), b[i] = pack(dy, row);
      r[i] = row < count ? rstd[row] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const long long row = start + i * GROUPS + group;
      float xs[N], ys[N], result[N], sum = 0.0f;
      Pack<T>::open(a[i], xs), Pack<T>::open(b[i], ys);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float product = xs[k] * ys[k];
        dw[k] += product * r[i];
        sum += product * ws[k];
      }
#pragma unroll
      for (int o = LANES / 2; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
      const float along = r[i] * (r[i] * sum / cols) * r[i];
#pragma unroll
      for (int k = 0; k < N; ++k) result[k] = ys[k] * ws[k] * r[i] - xs[k] * along;
      if (dresidual) {
        float more[N];
        Pack<T>::open(pack(dresidual, row), more);
#pragma unroll
        for (int k = 0; k < N; ++k) result[k] += more[k];
      }
      if (row < count && place * N < cols)
        __stcs(reinterpret_cast<uint4*>(dx + row * cols) + place, Pack<T>::close(result));
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) sums[group][place * N + k] = dw[k];
  __syncthreads();
  for (int column = threadIdx.x; column < cols; column += 256) {
    float total = 0.0f;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) total += sums[g][column];
    partial[(u64)blockIdx.x * cols + column] = total;
  }
}

// Any length and alignment, in two passes. First the mean of g * n: a block a row.
template <typename T>
__global__ void __launch_bounds__(256)
means(const T* x, const T* dy, const T* weight, const float* rstd, float* mean, int cols) {
  __shared__ float sums[8];
  const u64 row = blockIdx.x;
  float sum = 0.0f;
  for (int column = threadIdx.x; column < cols; column += 256)
    sum += wide(x[row * cols + column]) * wide(dy[row * cols + column]) * wide(weight[column]);
#pragma unroll
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) all += sums[w];
    mean[row] = all * rstd[row] / cols;
  }
}

// Then a thread a column, gridDim.y rows apart.
template <typename T>
__global__ void __launch_bounds__(256)
any_rows(const T* x, const T* dy, const T* weight, const float* rstd, const T* dresidual, const float* mean, T* dx,
         float* partial, int count, int cols) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  launch_dependents();
  if (column >= cols) return;
  const float w = wide(weight[column]);
  float dw = 0.0f;
  for (int row = blockIdx.y; row < count; row += gridDim.y) {
    const u64 at = (u64)row * cols + column;
    const float r = rstd[row], n = wide(x[at]) * r, y = wide(dy[at]);
    float d = r * (y * w - n * mean[row]);
    if (dresidual) d += wide(dresidual[at]);
    dx[at] = narrow<T>(d);
    dw += y * n;
  }
  partial[(u64)blockIdx.y * cols + column] = dw;
}

// 32 columns a block, always added up in the same order.
template <typename T>
__global__ void __launch_bounds__(1024) columns(const float* partial, T* dw, int count, int cols) {
  constexpr int AT_ONCE = 5;  // of 32: one latency for the partial sums of up to 160 blocks
  __shared__ float sums[32][33];
  const int lane = threadIdx.x % 32, part = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
  float total = 0.0f;
  launch_dependents();
  wait_for_primary();
  for (int start = part; start < count; start += 32 * AT_ONCE) {
    float some[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const int row = start + 32 * i;
      some[i] = row < count && column < cols ? partial[(u64)row * cols + column] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) total += some[i];
  }
  sums[part][lane] = total;
  __syncthreads();
  float all = sums[lane][part];
#pragma unroll
  for (int o = 16; o; o /= 2) all += __shfl_xor_sync(~0u, all, o);
  if (lane == 0 && blockIdx.x * 32 + part < cols) dw[blockIdx.x * 32 + part] = narrow<T>(all);
}
"""
TABLE = {8192: (8, 2, 2)}
"""Columns of 16-bit values to warps of a row, rows at a time, and stages at most, where the rule is not the best."""
TYPES = {torch.float32: "float", torch.bfloat16: "__nv_bfloat16"}
SHORT = 256
PACKS = 4
"""Of 16 bytes a thread: with dw, x, dy and the weight as they lie in memory, 80 registers."""
WARPS = 16
"""That work on rows, of all groups of a block."""
RING = 224 * 1024
MOST_STAGES = 8


@functools.cache
def compiled(name: str):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if name.startswith("rows"):
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        status, *_ = driver.cuKernelSetAttribute(limit, RING, kernel.handle, 0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{name}: {status}")
    return kernel


def run(x, dy, weight, rstd, dresidual):
    rows, cols = x.shape
    kind, lanes = TYPES[x.dtype], 16 // x.element_size()
    packs, residual = -(-cols // lanes), dresidual.shape[0] > 0
    least = -(-packs // (32 * PACKS))
    tuned = TABLE.get(cols) if x.element_size() == 2 and not residual else None
    warps, groups, most = tuned or (least, WARPS // least if least <= WARPS else 0, MOST_STAGES)  # warps of a row
    aligned = cols % lanes == 0 and all(t.data_ptr() % 16 == 0 for t in (x, dy, weight, dresidual))
    short = aligned and cols <= SHORT and packs <= 32
    many = torch.cuda.get_device_properties(x.device).multi_processor_count
    blocks = min(many * (2 if short else 1), -(-rows // 2))  # partial sums: no more memory than dx and dw
    dx, dw = torch.empty_like(x), torch.empty_like(weight)
    partial = torch.empty((blocks, cols), dtype=torch.float32, device=x.device)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    given = [t.data_ptr() for t in (x, dy, weight, rstd)]
    more, out = dresidual.data_ptr() if residual else 0, [dx.data_ptr(), partial.data_ptr()]
    size = [numpy.int32(rows), numpy.int32(cols)]
    if short:
        across = 1 << (packs - 1).bit_length()
        kernel = compiled(f"short_rows<{kind}, {across}>")
        config = LaunchConfig(grid=(blocks,), block=(256,), programmatic_stream_serialization=True)
        launch(stream, config, kernel, *given, more, *out, *size)
    elif aligned and warps <= WARPS:
        each = -(-packs // (32 * warps))
        place = (3 if residual else 2) * (-(-cols * x.element_size() // 128) * 128)  # bytes of a row in the ring
        stages = min(most, RING // (groups * place))
        kernel = compiled(f"rows<{kind}, {warps}, {groups}, {each}, {str(residual).lower()}>")
        config = LaunchConfig(
            grid=(blocks,),
            block=(32 * warps * groups,),
            shmem_size=RING,
            programmatic_stream_serialization=True,
        )
        launch(stream, config, kernel, *given, more, *out, *size, numpy.int32(stages))
    else:
        mean = torch.empty(rows, dtype=torch.float32, device=x.device)
        config = LaunchConfig(grid=(rows,), block=(256,))
        launch(stream, config, compiled(f"means<{kind}>"), *given, mean.data_ptr(), numpy.int32(cols))
        config = LaunchConfig(grid=(-(-cols // 256), blocks), block=(256,))
        kernel = compiled(f"any_rows<{kind}>")
        launch(stream, config, kernel, *given, more, mean.data_ptr(), *out, *size)
    early = LaunchConfig(grid=(-(-cols // 32),), block=(1024,), programmatic_stream_serialization=True)
    kernel = compiled(f"columns<{kind}>")
    launch(stream, early, kernel, partial.data_ptr(), dw.data_ptr(), numpy.int32(blocks), numpy.int32(cols))
    return dx, dw
