"""k is split over as many clusters as the device holds at a time.

Hypothesis: v4 counts multiprocessors, 132, where it should count clusters. They lie in groups of 14 to 18
multiprocessors, so an H200 that held 15 clusters of eight has room for some 31 of four, not for 16 and 33. At
64x4096x14336 v4 launches 16 of eight, and at 16x2112x7168 33 of four: the last ones share multiprocessors with others,
which takes these twice as long. Here the rows of a block are as many as one wave of clusters needs, and the number of
parts is the one whose blocks need the least time for what they read. All of the shared memory is one block's then, so
more stages are under way. A stage is given back while the next one's products run. Parts are added by four floats at a
time, all reads of which are out before the first is used.
Predicted: 32 us at 64x4096x14336 (v4 60, cuBLAS 35, floor 26), 2 to 5 % at four others, nothing at three.
Metric: dram_pct from 42 to 75 % at 64x4096x14336.
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

EARLY = 0
"""Whether a launch may begin before the one ahead of it has ended."""
SUM_COST = 16
"""Bytes that a block reads in the time that a byte of a part's sums takes to be written, read and added."""
STEP_COST = 8 * 1024
"""Bytes that a block reads in the least time of a stage: its copy, its products and two barriers."""
TOKEN_COST = 0.5
"""Share of the time of a byte of weights that a byte of tokens takes, which comes from L2."""
PAIRS_FROM = 64
"""Tokens from which two blocks share the reading of them, if k is not split."""
SKEW = 0
"""Whether blocks begin at different columns, so that they do not ask for the same ones of all rows at a time."""
SPLITS = (1, 2, 4, 8)
"""Parts that k may have, each a block of a cluster."""
LEAST_STEPS = 4
"""Steps of a part at least."""
MOST_STAGES = 8
TOGETHER = 1 << 18
"""Tokens of a launch at most: a grid has 65535 blocks along y, of eight tokens or more each."""

STEP = 64
"""Columns of a stage: 128 bytes, as wide as the swizzle."""
MOST_ROWS = 256
SHARED = 227 * 1024
"""Bytes of shared memory of a block, if it is alone."""

SOURCE = r"""
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;

struct bf16 {
  static constexpr bool BRAIN = true;
  u16 bits;
};
struct fp16 {
  static constexpr bool BRAIN = false;
  u16 bits;
};
struct alignas(64) TensorMap { u64 words[16]; };

template <typename T> __device__ __forceinline__ T rounded(float x) {
  T y;
  if constexpr (T::BRAIN) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  else asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
__device__ __forceinline__ float wide(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ float wide(fp16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

__device__ __forceinline__ u32 in_shared(const void* at) { return (u32)__cvta_generic_to_shared(at); }

__device__ __forceinline__ void set_up(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// At the barrier of another block that has this one's place in its shared memory. Release to the cluster would wait
// for all of the device's memory.
__device__ __forceinline__ void arrive_at(u32 barrier, u32 rank) {
  asm volatile(
      "{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [at];\n}" ::"r"(barrier), "r"(rank) : "memory");
}
__device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
      ::"r"(barrier), "r"(parity) : "memory");
}

// A tile of 64 columns from `column` and as many rows from `row` as the map says.
__device__ __forceinline__ void copy(u32 to, const TensorMap& map, int column, int row, u32 barrier, u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3}], [%4], %5;"
      ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "l"(policy) : "memory");
}

// The same into both blocks of a pair, and to the barriers of both.
__device__ __forceinline__ void copy_to_both(u32 to, const TensorMap& map, int column, int row, u32 barrier,
                                             u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;"
      ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"((u16)3), "l"(policy) : "memory");
}

// Rows of 128 bytes, swizzled, the eighth row 1024 bytes on.
__device__ __forceinline__ u64 describe(u32 at) {
  return (u64)((at & 0x3ffff) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

#define FOUR(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define WGMMA(TOKENS, TYPE, SUMS, A, B, ONE, ...)                                                         \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ONE ", 0;\n"                                       \
               "wgmma.mma_async.sync.aligned.m64n" TOKENS "k16.f32." TYPE "." TYPE                        \
               " {" SUMS "}, " A ", " B ", add, 1, 1, 0, 0;\n}"                                           \
               : __VA_ARGS__ : "l"(a), "l"(b), "r"(1))
#define SUMS_4 "%0, %1, %2, %3"
#define SUMS_8 SUMS_4 ", %4, %5, %6, %7"
#define SUMS_16 SUMS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SUMS_32 SUMS_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PRODUCTS(TYPE)                                                                                    \
  if constexpr (TOKENS == 8) WGMMA("8", TYPE, SUMS_4, "%4", "%5", "%6", FOUR(0));                         \
  if constexpr (TOKENS == 16) WGMMA("16", TYPE, SUMS_8, "%8", "%9", "%10", FOUR(0), FOUR(4));             \
  if constexpr (TOKENS == 32)                                                                             \
    WGMMA("32", TYPE, SUMS_16, "%16", "%17", "%18", FOUR(0), FOUR(4), FOUR(8), FOUR(12));                 \
  if constexpr (TOKENS == 64)                                                                             \
    WGMMA("64", TYPE, SUMS_32, "%32", "%33", "%34", FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16),        \
          FOUR(20), FOUR(24), FOUR(28));

// c += 64 rows of weights by TOKENS tokens, 16 columns.
template <typename T, int TOKENS>
__device__ __forceinline__ void multiply(float (&c)[TOKENS / 2], u64 a, u64 b) {
  if constexpr (T::BRAIN) {
    PRODUCTS("bf16")
  } else {
    PRODUCTS("f16")
  }
}

__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
__device__ __forceinline__ float4 read_remote(u32 own, u32 rank) {
  float4 there;
  asm volatile(
      "{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %4, %5;\nld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [at];\n}"
      : "=f"(there.x), "=f"(there.y), "=f"(there.z), "=f"(there.w) : "r"(own), "r"(rank) : "memory");
  return there;
}

// Block x: part x % parts of k, and `rows` rows of w from x / parts * rows on; block y: TOKENS tokens. A group of
// four warps for 64 rows, and a warp that fills the ring: a stage has room for 64 rows of w a group, of which `rows`
// are copied, and for TOKENS of x. In a PAIR each block reads half of the tokens for both, once both have done with
// the stage.
template <typename T, int TOKENS, bool PAIR>
__global__ void __launch_bounds__(544, 1)
stream(const __grid_constant__ TensorMap weights, const __grid_constant__ TensorMap tokens, T* y, int m, int n,
       int steps, int rows, int stages, int parts, int skew) {
  extern __shared__ unsigned char memory[];
  __shared__ alignas(8) u64 barriers[2][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, workers = blockDim.x - 32;
  const int part = blockIdx.x % parts, first = blockIdx.x / parts * rows;
  const int rank = blockIdx.x % 2;  // in a pair
  const u32 ring = (in_shared(memory) + 1023) & ~1023u, high = workers / 2, size = (high + TOKENS) * 128;
  const u32 full = in_shared(barriers[0]), empty = in_shared(barriers[1]);
  const int each = (steps + parts - 1) / parts, begin = part * each, count = min(each, steps - begin);

  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) set_up(full + 8 * s, 1), set_up(empty + 8 * s, workers / 32 * (PAIR ? 2 : 1));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (threadIdx.x == workers) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&weights) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&tokens) : "memory");
  }
  if constexpr (PAIR) cluster_barrier();
  else __syncthreads();
  asm volatile("griddepcontrol.wait;" ::: "memory");

  float c[TOKENS / 2];
#pragma unroll
  for (int i = 0; i < TOKENS / 2; ++i) c[i] = 0.0f;
  int stage = 0;
  u32 parity = 0;
  if (warp * 32 == workers) {
    if (lane == 0) {
      u64 once, often;
      asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
      asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(often));
      const int place = blockIdx.x / (PAIR ? 2 : parts), places = gridDim.x / (PAIR ? 2 : parts);
      int step = begin + (skew ? (int)((long long)place * count / places) : 0);
      for (int i = 0; i < count; ++i) {
        if (i >= stages) wait(empty + 8 * stage, parity ^ 1);
        const u32 to = ring + stage * size, barrier = full + 8 * stage;
        expect(barrier, (rows + TOKENS) * 128);
        copy(to, weights, step * 64, first, barrier, once);
        const int token = blockIdx.y * TOKENS + (PAIR ? rank * (TOKENS / 2) : 0);
        const u32 behind = to + (high + (PAIR ? rank * (TOKENS / 2) : 0)) * 128;
        if constexpr (PAIR) copy_to_both(behind, tokens, step * 64, token, barrier, often);
        else copy(behind, tokens, step * 64, token, barrier, often);
        if (++step == begin + count) step = begin;
        if (++stage == stages) stage = 0, parity ^= 1;
      }
    }
    __syncwarp();
  } else {
    const u32 own = warp / 4 * 8192;
    int before = 0;
    for (int i = 0; i < count; ++i) {
      const u32 at = ring + stage * size;
      const u64 a = describe(at + own), b = describe(at + high * 128);
      wait(full + 8 * stage, parity);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int j = 0; j < 4; ++j) multiply<T, TOKENS>(c, a + 2 * j, b + 2 * j);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");  // this stage's products go on
      if (i && lane == 0) arrive(empty + 8 * before);
      if (PAIR && i && lane == 1) arrive_at(empty + 8 * before, rank ^ 1);
      before = stage;
      if (++stage == stages) stage = 0, parity ^= 1;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }

  // Sums where the ring was: those of a token lie together, and 4 further than its rows, so that lanes share no bank.
  const int pitch = rows + 4;
  float* sums = reinterpret_cast<float*>(memory + (ring - in_shared(memory)));
  __syncthreads();
  if (threadIdx.x < workers) {
    const int row = warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < TOKENS / 8; ++i) {
      float* to = sums + (8 * i + lane % 4 * 2) * pitch + row;
      if (row < rows) to[0] = c[4 * i], to[pitch] = c[4 * i + 1];
      if (row + 8 < rows) to[8] = c[4 * i + 2], to[pitch + 8] = c[4 * i + 3];
    }
  }
  if (parts > 1) cluster_barrier();
  else __syncthreads();
  const int quarter = rows / 4, some = min(TOKENS, m - (int)blockIdx.y * TOKENS) * quarter;
  for (int i = part * blockDim.x + threadIdx.x; i < some; i += parts * blockDim.x) {
    const int token = i / quarter, row = (i - token * quarter) * 4;
    const float* own = sums + token * pitch + row;
    float4 of_part[8], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (parts > 1) {
#pragma unroll
      for (int p = 0; p < 8; ++p)
        if (p < parts) of_part[p] = read_remote(in_shared(own), p);
#pragma unroll
      for (int p = 0; p < 8; ++p)
        if (p < parts) sum.x += of_part[p].x, sum.y += of_part[p].y, sum.z += of_part[p].z, sum.w += of_part[p].w;
    } else {
      sum = *reinterpret_cast<const float4*>(own);
    }
    const float four[4] = {sum.x, sum.y, sum.z, sum.w};
    T* to = y + (long long)(blockIdx.y * TOKENS + token) * n + first + row;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (first + row + e < n) to[e] = rounded<T>(four[e]);
  }
  if (PAIR || parts > 1) cluster_barrier();  // nobody leaves while others read its sums or arrive at its barriers
}

// Any k and any address: a warp for a row of w, eight tokens at a time.
template <typename T>
__global__ void __launch_bounds__(256)
plain(const T* x, const T* w, T* y, int m, int n, int k) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const int lane = threadIdx.x % 32, first = blockIdx.y * 8;
  const long long row = (long long)blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= n) return;
  float c[8] = {};
  for (int i = lane; i < k; i += 32) {
    const float a = wide(w[row * k + i]);
#pragma unroll
    for (int t = 0; t < 8; ++t)
      if (first + t < m) c[t] = fmaf(a, wide(x[(long long)(first + t) * k + i]), c[t]);
  }
#pragma unroll
  for (int t = 0; t < 8; ++t) {
#pragma unroll
    for (int o = 16; o; o /= 2) c[t] += __shfl_xor_sync(0xffffffff, c[t], o);
    if (lane == 0 && first + t < m) y[(first + t) * (long long)n + row] = rounded<T>(c[t]);
  }
}
"""

TYPES = {torch.bfloat16: "bf16", torch.float16: "fp16"}
FORMATS = {
    torch.bfloat16: driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    torch.float16: driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
}


def checked(answer: tuple) -> object:
    """What the driver returned besides success."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver says {answer[0]}")
    return answer[1] if len(answer) > 1 else None


@functools.cache
def compiled(name: str):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if name.startswith("stream"):
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuKernelSetAttribute(most, SHARED - 1024, kernel.handle, torch.cuda.current_device()))
    return checked(driver.cuKernelGetFunction(kernel.handle))


def launch(
    name: str, grid: tuple[int, int], threads: int, arguments: tuple, shared: int = 0, cluster: int = 1
) -> None:
    """Arguments are pairs of a value and its ctypes type."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = *grid, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared
    config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    attributes = []
    if EARLY:
        early = driver.CUlaunchAttribute()
        early.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        early.value.programmaticStreamSerializationAllowed = 1
        attributes.append(early)
    if cluster > 1:
        together = driver.CUlaunchAttribute()
        together.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        together.value.clusterDim.x, together.value.clusterDim.y, together.value.clusterDim.z = cluster, 1, 1
        attributes.append(together)
    config.attrs, config.numAttrs = attributes, len(attributes)
    checked(driver.cuLaunchKernelEx(config, compiled(name), tuple(zip(*arguments, strict=True)), 0))


@functools.lru_cache(1024)
def tensor_map(address: int, rows: int, k: int, dtype: torch.dtype, box: int):
    """How TMA finds `box` rows of 64 columns; a function of its arguments, whatever lies at the address."""
    width, height = driver.cuuint64_t(k), driver.cuuint64_t(rows)
    return checked(
        driver.cuTensorMapEncodeTiled(
            FORMATS[dtype],
            2,
            address,
            [width, height],
            [driver.cuuint64_t(2 * k)],
            [driver.cuuint32_t(STEP), driver.cuuint32_t(box)],
            [driver.cuuint32_t(1), driver.cuuint32_t(1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )


@functools.cache
def split_work(n: int, steps: int, tokens: int, groups: int, at_once: tuple[int, ...]) -> tuple[int, int]:
    """Rows of a block and parts of k, such that blocks take least time; `at_once` has the clusters that the device
    holds, for each of SPLITS."""
    choices = []
    for parts, clusters in zip(SPLITS, at_once, strict=True):
        waves = -(-n * groups // (clusters * MOST_ROWS))
        if parts > 1 and (waves > 1 or steps < parts * LEAST_STEPS):
            continue
        rows = -(-n * groups // (clusters * waves * 16)) * 16
        shared = 2 if parts == 1 and tokens >= PAIRS_FROM else 1  # blocks that read the same tokens once
        step = max(2 * STEP * (rows + TOKEN_COST * tokens / shared), STEP_COST)
        cost = waves * -(-steps // parts) * step + (SUM_COST * 4 * tokens * rows if parts > 1 else 0)
        choices.append((cost, rows, parts))
    _, rows, parts = min(choices)
    return rows, parts


@functools.cache
def clusters_at_once(name: str, device: torch.device) -> tuple[int, ...]:
    """Clusters that the device holds for each of SPLITS, of blocks that have a multiprocessor each."""
    counts = [multiprocessors(device)]
    for blocks in SPLITS[1:]:
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = 4 * MOST_ROWS // 64 * 32 + 32, 1, 1
        config.sharedMemBytes = SHARED - 1024
        together = driver.CUlaunchAttribute()
        together.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        together.value.clusterDim.x, together.value.clusterDim.y, together.value.clusterDim.z = blocks, 1, 1
        config.attrs, config.numAttrs = [together], 1
        counts.append(checked(driver.cuOccupancyMaxActiveClusters(compiled(name), config)))
    return tuple(counts)


@functools.cache
def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


POINTER, INT = ctypes.c_void_p, ctypes.c_int


def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.empty(x.shape[0], w.shape[0], dtype=x.dtype, device=x.device)
    if x.shape[0] <= TOGETHER:
        multiply(x, w, y)
        return y
    for tokens, results in zip(x.split(TOGETHER), y.split(TOGETHER), strict=True):
        multiply(tokens, w, results)
    return y


def multiply(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
    """Write the product for as many tokens as a grid has room for."""
    (m, k), n = x.shape, w.shape[0]
    kind = TYPES[x.dtype]
    if k % 8 or x.data_ptr() % 16 or w.data_ptr() % 16:
        pointers = [(one.data_ptr(), POINTER) for one in (x, w, y)]
        launch(f"plain<{kind}>", (-(-n // 8), -(-m // 8)), 256, (*pointers, (m, INT), (n, INT), (k, INT)))
        return
    tokens = 8 if m <= 8 else 16 if m <= 16 else 32 if m <= 32 else 64
    groups, steps = -(-m // tokens), -(-k // STEP)
    at_once = clusters_at_once(f"stream<{kind}, {tokens}, false>", x.device)
    rows, parts = split_work(n, steps, tokens, groups, at_once)
    tiles, pair = -(-n // rows), parts == 1 and tokens >= PAIRS_FROM
    tiles += pair and tiles % 2  # one that reads nothing
    warps = 4 * -(-rows // 64)
    size = (16 * warps + tokens) * 128
    room = SHARED - 2048 - 1024
    stages = min(MOST_STAGES, -(-steps // parts), room // size)
    stages = max(stages, -(-tokens * (rows + 4) * 4 // size))  # the sums need room too
    launch(
        f"stream<{kind}, {tokens}, {'true' if pair else 'false'}>",
        (tiles * parts, groups),
        32 * warps + 32,
        (
            (tensor_map(w.data_ptr(), n, k, w.dtype, rows), None),
            (tensor_map(x.data_ptr(), m, k, x.dtype, tokens // 2 if pair else tokens), None),
            (y.data_ptr(), POINTER),
            *((number, INT) for number in (m, n, steps, rows, stages, parts, SKEW)),
        ),
        stages * size + 1024,
        2 if pair else parts,
    )
