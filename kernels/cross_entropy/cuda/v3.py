"""Rows that stay in shared memory between their two passes, in a ring of bulk copies that never stands still.

Hypothesis: a second reading from L2 costs a third of the time, since rows of 256 KB on all multiprocessors are more
than L2 keeps beside the stores. Shared memory keeps them: a block holds a row of up to 160 KB, the blocks of a
cluster one of more, in chunks of 16 KB. The first pass takes chunks as they arrive; the second one reads them again,
writes the gradient and gives each chunk back at once, so that rows to come are read while this one is written. One
warp fills the ring; what is left of it beside a row, 64 to 160 KB a multiprocessor, is under way at all times, which
is more than 4.3 TB/s x 1 us ask for. Two exponentials an element take 0.6 of the time that its bytes take. Blocks of
a cluster exchange a maximum and a sum by messages to a barrier, and no others wait for a row.
Predicted: 1040 us at 8192x131072, 605 at 4096x152064, 525 at 16384x32768 (floors 999, 579 and 499 at 4.3 TB/s).
Metric: dram_pct to 93 %; traffic_amplification 1.0.
"""

import ctypes
import functools
import typing

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

THREADS, VECTORS = 512, 4
"""Threads that compute, besides the warp that fills the ring, and 16-byte vectors of a thread in a chunk."""
FEW_THREADS, MANY_VECTORS, FEW_SLOTS, BLOCKS = 128, 8, 3, 4
"""The same for rows of one chunk of 16 KB: four blocks of a multiprocessor have a row each, so that their exchanges
overlap."""
HELD = 160
"""KB of a row that a block holds at most; a longer row takes a cluster of two, four or eight blocks."""
KEEP = 0
"""1: stores stay in L2 as others do. 0: they are the first to leave it."""

RING = 224 * 1024

SOURCE = r"""
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using i64 = long long;

constexpr float LOG2E = 1.4426950408889634f;
#define NOTHING __uint_as_float(0xff800000u)

struct bf16 { u16 bits; };
struct fp16 { u16 bits; };

__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ float wide(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ float wide(fp16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
template <typename T> __device__ __forceinline__ T narrow(float x);
template <> __device__ __forceinline__ float narrow<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 narrow<bf16>(float x) {
  bf16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
template <> __device__ __forceinline__ fp16 narrow<fp16>(float x) {
  fp16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

// 16 bytes of a row.
template <typename T> struct Vector;
template <> struct Vector<float> {
  static constexpr int N = 4;
  static constexpr u32 LEAST = 0xff800000u;
  static __device__ __forceinline__ void open(const uint4& raw, float (&x)[N]) {
    x[0] = __uint_as_float(raw.x), x[1] = __uint_as_float(raw.y);
    x[2] = __uint_as_float(raw.z), x[3] = __uint_as_float(raw.w);
  }
  static __device__ __forceinline__ uint4 close(const float (&x)[N]) {
    return {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3])};
  }
  static __device__ __forceinline__ float top(const uint4& raw) {
    float x[N];
    open(raw, x);
    return fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
  }
};
template <> struct Vector<bf16> {
  static constexpr int N = 8;
  static constexpr u32 LEAST = 0xff80ff80u;
  static __device__ __forceinline__ void two(u32 word, float& low, float& high) {
    low = __uint_as_float(word << 16), high = __uint_as_float(word & 0xffff0000u);
  }
  static __device__ __forceinline__ u32 join(float low, float high) {
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
  static __device__ __forceinline__ u32 more(u32 a, u32 b) {
    u32 word;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(word) : "r"(a), "r"(b));
    return word;
  }
  static __device__ __forceinline__ void open(const uint4& raw, float (&x)[N]) {
    two(raw.x, x[0], x[1]), two(raw.y, x[2], x[3]), two(raw.z, x[4], x[5]), two(raw.w, x[6], x[7]);
  }
  static __device__ __forceinline__ uint4 close(const float (&x)[N]) {
    return {join(x[0], x[1]), join(x[2], x[3]), join(x[4], x[5]), join(x[6], x[7])};
  }
  static __device__ __forceinline__ float top(const uint4& raw) {
    float low, high;
    two(more(more(raw.x, raw.y), more(raw.z, raw.w)), low, high);
    return fmaxf(low, high);
  }
};
template <> struct Vector<fp16> {
  static constexpr int N = 8;
  static constexpr u32 LEAST = 0xfc00fc00u;
  static __device__ __forceinline__ void open(const uint4& raw, float (&x)[N]) {
    const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = wide(fp16{(u16)(words[i / 2] >> (i % 2 * 16))});
  }
  static __device__ __forceinline__ u32 join(float low, float high) {
    u32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
  static __device__ __forceinline__ uint4 close(const float (&x)[N]) {
    return {join(x[0], x[1]), join(x[2], x[3]), join(x[4], x[5]), join(x[6], x[7])};
  }
  static __device__ __forceinline__ float top(const uint4& raw) {
    float x[N], most = NOTHING;
    open(raw, x);
#pragma unroll
    for (int i = 0; i < N; ++i) most = fmaxf(most, x[i]);
    return most;
  }
};

__device__ __forceinline__ float power(float x) {  // of two
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// The same with subnormal results, which a factor of 1 + 2 z lse may make normal numbers.
__device__ __forceinline__ float faint_power(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float finite(float top) { return top == NOTHING ? 0.0f : top; }

__device__ __forceinline__ u32 in_shared(const void* at) { return (u32)__cvta_generic_to_shared(at); }
__device__ __forceinline__ void set_up(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
      ::"r"(barrier), "r"(parity) : "memory");
}
// The same for what other blocks of the cluster have sent.
__device__ __forceinline__ void wait_for_cluster(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
      ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void copy(u32 to, const void* from, u32 bytes, u32 barrier, u64 policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
      ::"r"(to), "l"(from), "r"(bytes), "r"(barrier), "l"(policy) : "memory");
}
// Two numbers to the same place in another block, and their bytes to its barrier.
__device__ __forceinline__ void send(u32 to, float a, float b, u32 barrier, u32 rank) {
  u32 there, told;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(told) : "r"(barrier), "r"(rank));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];"
               ::"r"(there), "f"(a), "f"(b), "r"(told) : "memory");
}
template <bool KEEP> __device__ __forceinline__ void store(void* to, const uint4& raw) {
  if constexpr (KEEP) *reinterpret_cast<uint4*>(to) = raw;
  else __stcs(reinterpret_cast<uint4*>(to), raw);
}

// The maximum and the sum of LANES lanes; all of them get it, whatever their order.
template <int LANES> __device__ __forceinline__ void join_lanes(float& top, float& sum) {
  float most = top;
#pragma unroll
  for (int o = LANES / 2; o; o /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  sum *= power((top - finite(most)) * LOG2E);
#pragma unroll
  for (int o = LANES / 2; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  top = most;
}

// A cluster of CLUSTER blocks takes the rows cluster, cluster + clusters, ...; each block has `share` vectors of a
// row, in `chunks` chunks. Elements before the first and behind the last whole vector belong to the first block.
template <typename T, int CLUSTER, int THREADS, int VECTORS, int SLOTS, bool KEEP>
__global__ void __launch_bounds__(THREADS + 32, THREADS < 256 ? 4 : 1)
ring(const T* __restrict__ logits, const i64* __restrict__ targets, float* __restrict__ loss, T* __restrict__ dlogits,
     float z_loss, int rows, int cols, int share, int chunks) {
  constexpr int N = Vector<T>::N, CHUNK = THREADS * VECTORS, WARPS = THREADS / 32;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ __align__(8) u64 barriers[2 * SLOTS + 2];
  __shared__ float2 of_warps[2][WARPS];
  __shared__ __align__(8) float2 of_blocks[2][CLUSTER];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0;
  const int first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;
  const u32 slots = in_shared(memory), full = in_shared(barriers), empty = full + 8 * SLOTS, told = empty + 8 * SLOTS;
  if (threadIdx.x == 0) {
    for (int s = 0; s < SLOTS; ++s) set_up(full + 8 * s, 1), set_up(empty + 8 * s, THREADS);
    set_up(told, 1), set_up(told + 8, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  if constexpr (CLUSTER > 1) asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
  else __syncthreads();

  // A lane keeps the target of one of the next 32 rows.
  i64 ahead = -1;
  int row = first, turn = 0;
  auto target_of = [&]() {
    if (turn % 32 == 0) {
      const i64 one = row + (i64)lane * step;
      ahead = one < rows ? targets[one] : -1;
    }
    const i64 target = __shfl_sync(~0u, ahead, turn % 32);
    ++turn;
    return target;
  };
  // Elements of a row ahead of its first vector.
  auto head_of = [&](i64 start) { return min((int)(-start & (N - 1)), cols); };
  int slot = 0;
  u32 parity = 0;

  if (warp == WARPS) {
    u64 once;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
    bool again = false;
    for (; row < rows; row += step) {
      if (target_of() < 0) continue;
      const i64 start = (i64)row * cols;
      const int head = head_of(start), begin = rank * share, end = min(begin + share, (cols - head) / N);
      const T* from = logits + start + head;
      for (int c = 0; c < chunks; ++c) {
        if (lane == 0) {
          if (again) wait(empty + 8 * slot, parity ^ 1);
          const int at = begin + c * CHUNK, count = max(0, min(CHUNK, end - at));
          expect(full + 8 * slot, count * 16);
          if (count) copy(slots + slot * CHUNK * 16, from + (i64)at * N, count * 16, full + 8 * slot, once);
        }
        if (++slot == SLOTS) slot = 0, parity ^= 1, again = true;
      }
      __syncwarp();
    }
    return;
  }

  int phase = 0;
  for (; row < rows; row += step) {
    const i64 target = target_of(), start = (i64)row * cols;
    const int head = head_of(start), vectors = (cols - head) / N, begin = rank * share;
    const int end = min(begin + share, vectors), behind = head + vectors * N;
    T* to = dlogits + start;
    // An element outside of all vectors, if this thread has one.
    int edge = threadIdx.x < head ? threadIdx.x : behind + (int)threadIdx.x - head;
    const bool has_edge = rank == 0 && edge < cols && (edge < head || edge >= behind);
    if (target < 0) {
      for (int v = begin + threadIdx.x; v < end; v += THREADS)
        store<KEEP>(to + head + (i64)v * N, make_uint4(0, 0, 0, 0));
      if (has_edge) to[edge] = narrow<T>(0.0f);
      if (rank == 0 && threadIdx.x == 0) loss[row] = 0.0f;
      continue;
    }
    T label, alone_raw;  // converted where they are needed: nobody waits for them here
    if (rank == 0 && threadIdx.x == 0) label = logits[start + target];
    if (has_edge) alone_raw = logits[start + edge];

    float top = NOTHING, sum = 0.0f;
    const int first_slot = slot;
    for (int c = 0; c < chunks; ++c) {
      const uint4* own = reinterpret_cast<const uint4*>(memory) + slot * CHUNK + threadIdx.x;
      const int at = begin + c * CHUNK + threadIdx.x;
      wait(full + 8 * slot, parity);
      uint4 raw[VECTORS];
      float most = top;
#pragma unroll
      for (int i = 0; i < VECTORS; ++i) {
        constexpr u32 LEAST = Vector<T>::LEAST;
        raw[i] = at + i * THREADS < end ? own[i * THREADS] : make_uint4(LEAST, LEAST, LEAST, LEAST);
        most = fmaxf(most, Vector<T>::top(raw[i]));
      }
      const float safe = finite(most);
      sum *= power((top - safe) * LOG2E);
#pragma unroll
      for (int i = 0; i < VECTORS; ++i) {
        float x[N], part[2] = {};
        Vector<T>::open(raw[i], x);
#pragma unroll
        for (int k = 0; k < N; ++k) part[k % 2] += power((x[k] - safe) * LOG2E);
        sum += part[0] + part[1];
      }
      top = most;
      if (++slot == SLOTS) slot = 0, parity ^= 1;
    }
    const float alone = has_edge ? wide(alone_raw) : NOTHING;
    if (has_edge) {
      const float most = fmaxf(top, alone), safe = finite(most);
      sum = sum * power((top - safe) * LOG2E) + power((alone - safe) * LOG2E);
      top = most;
    }
    join_lanes<32>(top, sum);
    if (lane == 0) of_warps[phase & 1][warp] = make_float2(top, sum);
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
    const float2 some = of_warps[phase & 1][lane % WARPS];
    top = some.x, sum = some.y;
    join_lanes<WARPS>(top, sum);
    if constexpr (CLUSTER > 1) {
      const u32 barrier = told + 8 * (phase & 1);
      if (warp == 0) {
        if (lane == 0) expect(barrier, CLUSTER * 8);
        if (lane < CLUSTER) send(in_shared(&of_blocks[phase & 1][rank]), top, sum, barrier, lane);
      }
      wait_for_cluster(barrier, phase >> 1 & 1);
      const float2 one = of_blocks[phase & 1][lane % CLUSTER];
      top = one.x, sum = one.y;
      join_lanes<CLUSTER>(top, sum);
    }
    ++phase;
    const float lse = top + logf(sum), factor = (1.0f + 2.0f * z_loss * lse) / sum;
    if (rank == 0 && threadIdx.x == 0) loss[row] = lse - wide(label) + z_loss * lse * lse;

    const int label_at = (int)target - head, label_vector = label_at < 0 ? -1 : label_at / N, label_in = label_at % N;
    slot = first_slot;
    for (int c = 0; c < chunks; ++c) {
      const uint4* own = reinterpret_cast<const uint4*>(memory) + slot * CHUNK + threadIdx.x;
      const int at = begin + c * CHUNK + threadIdx.x;
      uint4 raw[VECTORS];
#pragma unroll
      for (int i = 0; i < VECTORS; ++i)
        if (at + i * THREADS < end) raw[i] = own[i * THREADS];
#pragma unroll
      for (int i = 0; i < VECTORS; ++i) {
        const int v = at + i * THREADS;
        if (v < end) {
          float x[N];
          Vector<T>::open(raw[i], x);
#pragma unroll
          for (int k = 0; k < N; ++k) x[k] = faint_power((x[k] - top) * LOG2E) * factor;
          if (v == label_vector) {
#pragma unroll
            for (int k = 0; k < N; ++k) x[k] -= k == label_in ? 1.0f : 0.0f;
          }
          store<KEEP>(to + head + (i64)v * N, Vector<T>::close(x));
        }
      }
      arrive(empty + 8 * slot);  // all that was read has been used, so the next copy may come
      if (++slot == SLOTS) slot = 0;
    }
    if (has_edge) to[edge] = narrow<T>(faint_power((alone - top) * LOG2E) * factor - (edge == target ? 1.0f : 0.0f));
  }
}

// Rows of any length at any address, read twice.
template <typename T>
__global__ void __launch_bounds__(1024)
plain(const T* __restrict__ logits, const i64* __restrict__ targets, float* __restrict__ loss, T* __restrict__ dlogits,
      float z_loss, int rows, int cols) {
  __shared__ float2 of_warps[32];
  const int lane = threadIdx.x % 32;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = logits + (i64)row * cols;
    T* to = dlogits + (i64)row * cols;
    const i64 target = targets[row];
    if (target < 0) {
      for (int c = threadIdx.x; c < cols; c += 1024) to[c] = narrow<T>(0.0f);
      if (threadIdx.x == 0) loss[row] = 0.0f;
      continue;
    }
    float top = NOTHING, sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 1024) {
      const float x = wide(from[c]), most = fmaxf(top, x), safe = finite(most);
      sum = sum * power((top - safe) * LOG2E) + power((x - safe) * LOG2E);
      top = most;
    }
    join_lanes<32>(top, sum);
    __syncthreads();
    if (lane == 0) of_warps[threadIdx.x / 32] = make_float2(top, sum);
    __syncthreads();
    top = of_warps[lane].x, sum = of_warps[lane].y;
    join_lanes<32>(top, sum);
    const float lse = top + logf(sum), factor = (1.0f + 2.0f * z_loss * lse) / sum;
    if (threadIdx.x == 0) loss[row] = lse - wide(from[target]) + z_loss * lse * lse;
    for (int c = threadIdx.x; c < cols; c += 1024)
      to[c] = narrow<T>(faint_power((wide(from[c]) - top) * LOG2E) * factor - (c == target ? 1.0f : 0.0f));
  }
}
"""

TYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "float"}
CHUNK = THREADS * VECTORS * 16
SLOTS = RING // CHUNK


def checked(answer: tuple) -> object:
    """What the driver returned besides success."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver says {answer[0]}")
    return answer[1] if len(answer) > 1 else None


@functools.cache
def compiled(name: str, shared: int):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if shared:
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuKernelSetAttribute(most, shared, kernel.handle, torch.cuda.current_device()))
    return checked(driver.cuKernelGetFunction(kernel.handle))


def launch_of(threads: int, cluster: int, shared: int) -> driver.CUlaunchConfig:
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = cluster, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared
    if cluster > 1:
        together = driver.CUlaunchAttribute()
        together.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        together.value.clusterDim.x, together.value.clusterDim.y, together.value.clusterDim.z = cluster, 1, 1
        config.attrs, config.numAttrs = [together], 1
    return config


class Plan(typing.NamedTuple):
    """The kernel, its launch, and the vectors and chunks of a block."""

    name: str
    threads: int
    cluster: int
    shared: int
    clusters: int
    """How many run at once."""
    share: int
    chunks: int


@functools.cache
def plan(dtype: torch.dtype, cols: int, aligned: bool, device: torch.device) -> Plan:
    many = torch.cuda.get_device_properties(device).multi_processor_count
    keep = "true" if KEEP else "false"
    vectors = cols * dtype.itemsize // 16
    if aligned and vectors <= FEW_THREADS * MANY_VECTORS:
        name = f"ring<{TYPES[dtype]}, 1, {FEW_THREADS}, {MANY_VECTORS}, {FEW_SLOTS}, {keep}>"
        shared = FEW_SLOTS * FEW_THREADS * MANY_VECTORS * 16
        return Plan(name, FEW_THREADS + 32, 1, shared, BLOCKS * many, vectors, 1)
    for cluster in (1, 2, 4, 8):
        share = -(-vectors // cluster)
        chunks = max(1, -(-share * 16 // CHUNK))
        if aligned and chunks * CHUNK <= min(HELD * 1024, SLOTS * CHUNK):
            name = f"ring<{TYPES[dtype]}, {cluster}, {THREADS}, {VECTORS}, {SLOTS}, {keep}>"
            if cluster > 1:
                config = launch_of(THREADS + 32, cluster, SLOTS * CHUNK)
                many = checked(driver.cuOccupancyMaxActiveClusters(compiled(name, SLOTS * CHUNK), config))
            return Plan(name, THREADS + 32, cluster, SLOTS * CHUNK, many, share, chunks)
    return Plan(f"plain<{TYPES[dtype]}>", 1024, 1, 0, 2 * many, 0, 0)


POINTER, INT, FLOAT = ctypes.c_void_p, ctypes.c_int, ctypes.c_float


def run(logits: torch.Tensor, targets: torch.Tensor, z_loss: float) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    dlogits = torch.empty_like(logits)
    aligned = logits.data_ptr() % 16 == 0 and dlogits.data_ptr() % 16 == 0
    chosen = plan(logits.dtype, cols, aligned, logits.device)
    config = launch_of(chosen.threads, chosen.cluster, chosen.shared)
    config.gridDimX = chosen.cluster * min(rows, chosen.clusters)
    config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    arguments = [(one.data_ptr(), POINTER) for one in (logits, targets, loss, dlogits)]
    arguments += [(z_loss, FLOAT), (rows, INT), (cols, INT)]
    if chosen.chunks:
        arguments += [(chosen.share, INT), (chosen.chunks, INT)]
    checked(driver.cuLaunchKernelEx(config, compiled(chosen.name, chosen.shared), tuple(zip(*arguments, strict=True)), 0))
    return loss, dlogits
