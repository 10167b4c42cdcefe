"""Softmax: a cluster of blocks has a row in registers, as it came, and several such blocks share a multiprocessor.

Hypothesis: a ring of rows in shared memory passes each element through it twice, and one block's phases follow each
other. Here a row's bytes stay in the registers that loaded them, 128 a thread, and four blocks of 256 threads lie on a
multiprocessor: while one waits for its cluster, the others load or write. That is 128 KB under way. Exponentials are
taken twice, which special function units have time for: half of it at 4.2 TB/s. The blocks of a row exchange a maximum
and a sum by `st.async`; a block has what it needs once its barrier has counted all of them, so no cluster barrier
stands at the end. Up to eight blocks hold 256 KB, and twice that with 512 threads each, of which two share a
multiprocessor. Short rows have a warp each; rows that are not aligned to 16 bytes, or longer, are read twice.
Predicted: 68 us at 2048x32768, 69 at 512x131072 in bfloat16 (floor 63) and 136 in float32 (126): new blocks must be
launched for each row, which a ring need not, but nothing waits for shared memory.
Metric: dram_pct to 90 %.
"""

import functools
import math

import numpy
import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

MOST_VECTORS = 8
"""Vectors of 16 bytes of a thread at most."""
AT_ONCE = 4
"""Blocks with as many that share a multiprocessor, and so have their registers; of smaller ones there is one more."""
MOST_BLOCKS = 8
"""Blocks of a cluster at most: those that every device has room for."""
WARP_ROW = 4096
"""Bytes of a row up to which one warp has it in registers."""
THREADS = 256
"""Threads of a block; twice as many where a row is longer than a cluster of such blocks holds."""

SOURCE = r"""
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;

struct bf16 { u16 bits; };
struct fp16 { u16 bits; };

constexpr u32 ALL = 0xffffffff;
constexpr float LOG2E = 1.4426950408889634f;

__device__ __forceinline__ float lowest() { return __int_as_float(0xff800000); }
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float exponential(float x) { return exp2_approx(x * LOG2E); }

__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ float wide(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ float wide(fp16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ void narrow(float x, float& y) { y = x; }
__device__ __forceinline__ void narrow(float x, bf16& y) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
__device__ __forceinline__ void narrow(float x, fp16& y) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }

// 16 bytes: four or eight elements.
template <typename T> struct Vector;
template <> struct Vector<float> {
  static constexpr int SIZE = 4;
  __device__ static __forceinline__ u32 larger(u32 a, u32 b) {
    return __float_as_uint(fmaxf(__uint_as_float(a), __uint_as_float(b)));
  }
  __device__ static __forceinline__ uint4 nothing() { return make_uint4(0xff800000, 0xff800000, 0xff800000, 0xff800000); }
  __device__ static __forceinline__ void unpack(uint4 v, float* e) {
    e[0] = __uint_as_float(v.x), e[1] = __uint_as_float(v.y), e[2] = __uint_as_float(v.z), e[3] = __uint_as_float(v.w);
  }
  __device__ static __forceinline__ uint4 pack(const float* e) {
    return make_uint4(__float_as_uint(e[0]), __float_as_uint(e[1]), __float_as_uint(e[2]), __float_as_uint(e[3]));
  }
};
template <typename T> struct Halves {
  static constexpr int SIZE = 8;
  __device__ static __forceinline__ uint4 nothing() {
    return make_uint4(T::LOWEST, T::LOWEST, T::LOWEST, T::LOWEST);
  }
  __device__ static __forceinline__ uint4 pack(const float* e) {
    return make_uint4(T::pair(e[0], e[1]), T::pair(e[2], e[3]), T::pair(e[4], e[5]), T::pair(e[6], e[7]));
  }
  __device__ static __forceinline__ void unpack(uint4 v, float* e) {
    T::split(v.x, e), T::split(v.y, e + 2), T::split(v.z, e + 4), T::split(v.w, e + 6);
  }
};
template <> struct Vector<bf16> : Halves<Vector<bf16>> {
  __device__ static __forceinline__ u32 larger(u32 a, u32 b) {  // of both pairs
    u32 y;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
    return y;
  }
  static constexpr u32 LOWEST = 0xff80ff80;
  __device__ static __forceinline__ u32 pair(float low, float high) {
    u32 y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
  }
  __device__ static __forceinline__ void split(u32 v, float* e) {
    e[0] = __uint_as_float(v << 16), e[1] = __uint_as_float(v & 0xffff0000);
  }
};
template <> struct Vector<fp16> : Halves<Vector<fp16>> {
  __device__ static __forceinline__ u32 larger(u32 a, u32 b) {  // of both pairs
    u32 y;
    asm("max.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
    return y;
  }
  static constexpr u32 LOWEST = 0xfc00fc00;
  __device__ static __forceinline__ u32 pair(float low, float high) {
    u32 y;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
  }
  __device__ static __forceinline__ void split(u32 v, float* e) {
    e[0] = wide(fp16{(u16)v}), e[1] = wide(fp16{(u16)(v >> 16)});
  }
};

__device__ __forceinline__ u32 in_shared(const void* at) { return (u32)__cvta_generic_to_shared(at); }
__device__ __forceinline__ void set_up(u32 barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Acquires what other blocks of the cluster wrote.
__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier), "r"(parity) : "memory");
}
// Without a fence of the device's memory: the one of the barriers that were set up is enough.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// Eight bytes to the same place in another block, which its barrier counts.
__device__ __forceinline__ void send(u32 to, float2 value, u32 barrier, u32 block) {
  asm volatile(
      "{\n.reg .b32 there, gate;\nmapa.shared::cluster.u32 there, %0, %4;\nmapa.shared::cluster.u32 gate, %3, %4;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [there], {%1, %2}, [gate];\n}"
      ::"r"(to), "f"(value.x), "f"(value.y), "r"(barrier), "r"(block) : "memory");
}

// A maximum, and a sum of exponentials over it. Where nothing is above minus infinity, the sum is 0.
__device__ __forceinline__ float2 joined(float2 a, float2 b) {
  const float top = fmaxf(a.x, b.x);
  const float share_a = a.x == top ? 1.0f : exponential(a.x - top), share_b = b.x == top ? 1.0f : exponential(b.x - top);
  return make_float2(top, a.y * share_a + b.y * share_b);
}
template <int LANES> __device__ __forceinline__ float2 over_lanes(float2 own) {
  const float mine = own.x;
#pragma unroll
  for (int o = LANES / 2; o; o /= 2) own.x = fmaxf(own.x, __shfl_xor_sync(ALL, own.x, o));
  own.y *= mine == own.x ? 1.0f : exponential(mine - own.x);
#pragma unroll
  for (int o = LANES / 2; o; o /= 2) own.y += __shfl_xor_sync(ALL, own.y, o);
  return own;
}

// Replaces elements by exponentials over their maximum.
template <int COUNT> __device__ __forceinline__ float2 exponentials(float (&e)[COUNT]) {
  float top = e[0], sum = 0.0f;
#pragma unroll
  for (int i = 1; i < COUNT; ++i) top = fmaxf(top, e[i]);
  const float safe = top == lowest() ? 0.0f : top;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) sum += e[i] = exponential(e[i] - safe);
  return make_float2(top, sum);
}

// A row for each warp, `cols` a multiple of 16 bytes.
template <typename T, int COUNT>
__global__ void __launch_bounds__(256) warp_rows(const T* x, T* y, int rows, int cols) {
  using V = Vector<T>;
  const int lane = threadIdx.x % 32;
  const long long row = (long long)blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  const uint4* from = reinterpret_cast<const uint4*>(x + row * cols);
  uint4* to = reinterpret_cast<uint4*>(y + row * cols);
  const int vectors = cols / V::SIZE;
  uint4 v[COUNT];
#pragma unroll
  for (int j = 0; j < COUNT; ++j)
    if (lane + 32 * j < vectors) v[j] = __ldcs(from + lane + 32 * j);
  float e[COUNT * V::SIZE];
#pragma unroll
  for (int j = 0; j < COUNT; ++j) {
    if (lane + 32 * j < vectors) {
      V::unpack(v[j], e + j * V::SIZE);
    } else {
#pragma unroll
      for (int k = 0; k < V::SIZE; ++k) e[j * V::SIZE + k] = lowest();
    }
  }
  const float2 own = exponentials(e), whole = over_lanes<32>(own);
  const float factor = exponential(own.x - whole.x) / whole.y;
#pragma unroll
  for (int j = 0; j < COUNT; ++j) {
#pragma unroll
    for (int k = 0; k < V::SIZE; ++k) e[j * V::SIZE + k] *= factor;
    if (lane + 32 * j < vectors) __stcs(to + lane + 32 * j, V::pack(e + j * V::SIZE));
  }
}

// A maximum of a thread's elements and a sum of exponentials over it. Elements that are missing are lowest().
template <typename T, int COUNT> __device__ __forceinline__ float2 summed(const uint4 (&v)[COUNT]) {
  using V = Vector<T>;
  u32 most = V::larger(V::larger(v[0].x, v[0].y), V::larger(v[0].z, v[0].w));
#pragma unroll
  for (int j = 1; j < COUNT; ++j)
    most = V::larger(most, V::larger(V::larger(v[j].x, v[j].y), V::larger(v[j].z, v[j].w)));
  float pair[V::SIZE];
  V::unpack(make_uint4(most, most, most, most), pair);
  const float top = fmaxf(pair[0], pair[1]), safe = top == lowest() ? 0.0f : top;
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < COUNT; ++j) {
    float e[V::SIZE];
    V::unpack(v[j], e);
#pragma unroll
    for (int k = 0; k < V::SIZE; ++k) sum += exponential(e[k] - safe);
  }
  return make_float2(top, sum);
}

// A cluster of BLOCKS blocks has one row; each block has `part` elements of it, the last one what is left.
template <typename T, int COUNT, int BLOCKS, int THREADS, int AT_ONCE>
__global__ void __launch_bounds__(THREADS, AT_ONCE) parts(const T* x, T* y, int cols, int part) {
  using V = Vector<T>;
  __shared__ alignas(8) u64 barrier;
  __shared__ alignas(8) float2 of_warps[THREADS / 32];
  __shared__ alignas(8) float2 of_blocks[BLOCKS];
  const int rank = blockIdx.x % BLOCKS, lane = threadIdx.x % 32;
  const long long begin = (long long)(blockIdx.x / BLOCKS) * cols + rank * part;
  const int vectors = max(0, min(part, cols - rank * part)) / V::SIZE;
  const u32 gate = in_shared(&barrier);
  if constexpr (BLOCKS > 1) {
    if (threadIdx.x == 0) {
      set_up(gate);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      expect(gate, 8 * BLOCKS);
    }
    __syncwarp();
    cluster_arrive();
  }
  const uint4* from = reinterpret_cast<const uint4*>(x + begin);
  uint4 v[COUNT];
#pragma unroll
  for (int j = 0; j < COUNT; ++j) {
    const int at = threadIdx.x + THREADS * j;
    v[j] = at < vectors ? __ldcs(from + at) : V::nothing();
  }
  const float2 of_warp = over_lanes<32>(summed<T>(v));
  if (lane == 0) of_warps[threadIdx.x / 32] = of_warp;
  __syncthreads();
  float2 whole = over_lanes<THREADS / 32>(of_warps[lane % (THREADS / 32)]);
  if constexpr (BLOCKS > 1) {
    cluster_wait();  // all barriers are set up
    if (threadIdx.x < BLOCKS) send(in_shared(&of_blocks[rank]), whole, gate, threadIdx.x);
    wait(gate, 0);
    whole = over_lanes<BLOCKS>(of_blocks[lane % BLOCKS]);
  }
  const float factor = 1.0f / whole.y;
  uint4* to = reinterpret_cast<uint4*>(y + begin);
#pragma unroll
  for (int j = 0; j < COUNT; ++j) {
    float e[V::SIZE];
    V::unpack(v[j], e);
#pragma unroll
    for (int k = 0; k < V::SIZE; ++k) e[k] = exponential(e[k] - whole.x) * factor;
    const int at = threadIdx.x + THREADS * j;
    if (at < vectors) __stcs(to + at, V::pack(e));
  }
}

// Any length and any address: a block for each row, which it reads twice.
template <typename T>
__global__ void __launch_bounds__(512) plain(const T* x, T* y, int rows, int cols) {
  __shared__ float2 of_warps[16];
  const T* from = x + (long long)blockIdx.x * cols;
  T* to = y + (long long)blockIdx.x * cols;
  float2 own = make_float2(lowest(), 0.0f);
  for (int i = threadIdx.x; i < cols; i += 512) {
    const float e = wide(from[i]);
    own = joined(own, make_float2(e, e == lowest() ? 0.0f : exponential(e - e)));
  }
  own = over_lanes<32>(own);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  const float2 whole = over_lanes<16>(of_warps[threadIdx.x % 16]);
  const float factor = 1.0f / whole.y;
  for (int i = threadIdx.x; i < cols; i += 512) narrow(exponential(wide(from[i]) - whole.x) * factor, to[i]);
}
"""

NAMES = {torch.float32: "float", torch.bfloat16: "bf16", torch.float16: "fp16"}


@functools.cache
def compiled(name: str):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


@functools.cache
def multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def shape_of_parts(rows: int, cols: int, size: int, many: int) -> tuple[int, int, int, int]:
    """Blocks of a row, threads and elements of each, and vectors of a thread, on `many` multiprocessors."""
    most = THREADS * MOST_VECTORS * 16
    threads = THREADS if cols * size <= MOST_BLOCKS * most else 2 * THREADS
    blocks, most = 1, most * threads // THREADS
    while blocks < MOST_BLOCKS and (
        cols * size > blocks * most or (rows * blocks * 2 <= many and cols * size > blocks * 8192)
    ):
        blocks *= 2
    vector = 16 // size
    part = math.ceil(cols / blocks / vector) * vector
    count = math.ceil(part * size / (threads * 16))
    return blocks, threads, part, 1 << (count - 1).bit_length()


@functools.cache
def planned(rows: int, cols: int, dtype: torch.dtype, aligned: bool, device: int):
    """The kernel, how it is launched, and its last arguments."""
    size, name = dtype.itemsize, NAMES[dtype]
    if not aligned or cols * size % 16 or cols * size > MOST_BLOCKS * 2 * THREADS * MOST_VECTORS * 16:
        return compiled(f"plain<{name}>"), LaunchConfig(grid=rows, block=512), (rows, cols)
    if cols * size <= WARP_ROW:
        count = 1 << max(0, math.ceil(cols * size / 512) - 1).bit_length()
        config = LaunchConfig(grid=math.ceil(rows / 8), block=THREADS)
        return compiled(f"warp_rows<{name}, {count}>"), config, (rows, cols)
    blocks, threads, part, count = shape_of_parts(rows, cols, size, multiprocessors(device))
    together = {"cluster": blocks} if blocks > 1 else {}
    config = LaunchConfig(grid=rows, block=threads, **together)  # with a cluster, the grid counts clusters
    at_once = AT_ONCE * THREADS // threads if count == MOST_VECTORS else AT_ONCE + 1
    return compiled(f"parts<{name}, {count}, {blocks}, {threads}, {at_once}>"), config, (cols, part)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, cols = x.shape
    if not x.numel():
        return y
    kernel, config, sizes = planned(rows, cols, x.dtype, x.data_ptr() % 16 == 0, x.device.index)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    launch(stream, config, kernel, x.data_ptr(), y.data_ptr(), *map(numpy.int32, sizes))
    return y
