"""Warps for copies alone, two groups that multiply in turns, and blocks that stay: tiles of 128 rows by 192 or 128.

Hypothesis: in Triton the warps that multiply also wait for copies, and promote while tensor cores rest. Here one
thread fills a ring of stages by TMA and runs ahead into the next tile, and each of two groups of four warps has 64
rows: while one adds a stage's products, times their scales, to its sums, the other multiplies. Blocks stay and take
tiles in a fixed order, so that results are written under the next tile's copies. A tile of 128 x 128 asks L2 for 64
bytes a cycle, twice what it gives: two blocks with neighboring tiles of the same rows read half of the rows each, for
both, and tiles are 192 wide where that wastes little.
Predicted: 130 us with the 128 tokens of 75 experts, 240, 340, 600 and 500 with more, 1600 and 870 for four and eight
experts, 60 at 20 of 32, where the launch counts (floors 83, 202, 283, 381, 387, 1218, 609 and 11).
Metric: tensor_pct to 65 % at 256-of-4-in-4x4096x7168.
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

BLOCK = 128
"""Columns of k that share a scale, those of a stage; and rows of a that belong to one expert."""
WIDTHS = (192, 128)
"""Rows of b in a tile."""
WIDTH = 0
"""One of them for all sizes; 0: by waves."""
GROUP = 16
"""Row blocks that go through b together, so that both stay in L2."""
STAGES = {192: 4, 128: 5}
THREADS = 384

SOURCE = r"""
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;

struct alignas(64) TensorMap { u64 words[16]; };

__device__ __forceinline__ u32 in_shared(const void* at) { return (u32)__cvta_generic_to_shared(at); }
__device__ __forceinline__ void set_up(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// At the barrier of the other block that has this one's place in its shared memory. Release to the cluster would wait
// for all of the device's memory; what this block has read is in registers by then.
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
// 128 numbers from `column` on and as many rows from `row` as the map says.
__device__ __forceinline__ void copy(u32 to, const TensorMap& map, int column, int row, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}
// The same into both blocks of a pair, and to the barriers of both.
__device__ __forceinline__ void copy_to_both(u32 to, const TensorMap& map, int column, int row, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;"
      ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"((u16)3) : "memory");
}
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
__device__ __forceinline__ float read_shared(u32 at) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
  return x;
}

// Rows of 128 bytes, swizzled, the eighth row 1024 bytes on.
__device__ __forceinline__ u64 describe(u32 at) {
  return (u64)((at & 0x3ffff) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

#define FOUR(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define SUMS_64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31" \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SUMS_96 \
  SUMS_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

// c += 64 rows of a by WIDE rows of b, 32 columns; c is not read if `add` is 0.
template <int WIDE>
__device__ __forceinline__ void multiply(float (&c)[WIDE / 2], u64 a, u64 b, int add) {
  if constexpr (WIDE == 128)
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" SUMS_64 "}, %64, %65, add, 1, 1;\n}"
                 : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48) : "l"(a), "l"(b), "r"(add));
  else
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %98, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n192k32.f32.e4m3.e4m3 {" SUMS_96 "}, %96, %97, add, 1, 1;\n}"
                 : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80)
                 : "l"(a), "l"(b), "r"(add));
}

// The expert of a row: the first one that ends behind it.
__device__ __forceinline__ int expert_of(const int* offsets, int experts, int row) {
  int low = 0, high = experts - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (__ldg(offsets + middle + 1) > row) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The same, searched by a whole warp at once.
__device__ __forceinline__ int expert_of_warp(const int* offsets, int experts, int row, int lane) {
  int ended = 0;
  for (int e = lane; e < experts - 1; e += 32) ended += __ldg(offsets + e + 1) <= row;
  return __reduce_add_sync(~0u, ended);
}

struct Tile { int row, column; };

// Tile number `work` of a block: bands of row blocks go through b together, pairs of tiles lie side by side.
__device__ __forceinline__ Tile tile_at(int work, int blocks, int pairs, int band, int wide, int rank) {
  const int first = work / (band * pairs) * band, inside = work % (band * pairs), rows = min(band, blocks - first);
  return {(first + inside % rows) * 128, (inside / rows * 2 + rank) * wide};
}

// Warps 0 to 3 and 4 to 7 have 64 rows of a tile each, warp 8 copies. A stage has 128 rows of a, of which each block
// of a pair copies a half for both, WIDE rows of b, and the scales of the rows, by tensor copies alone: racecheck does
// not see who waits at which of these barriers, and would call a store or a plain bulk copy into a stage a race. Scales
// of b change at multiples of 128 rows, so the two in a tile meet 64 or 128 rows behind its first.
template <int WIDE>
__global__ void __launch_bounds__(384, 1)
products(const __grid_constant__ TensorMap left, const __grid_constant__ TensorMap right,
         const __grid_constant__ TensorMap factors, const float* b_scales, const int* offsets, u16* y, int n,
         int groups, int blocks, int experts, int pairs, int band, int stages) {
  extern __shared__ unsigned char memory[];
  __shared__ alignas(8) u64 barriers[2][8];
  constexpr u32 A = 128 * 128, B = WIDE * 128, SIZE = A + B, SCALES = 512, PITCH = WIDE * 2 + 16;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = blockIdx.x % 2;
  const u32 ring = (in_shared(memory) + 1023) & ~1023u, scales = ring + stages * SIZE, out = scales + stages * SCALES;
  const u32 full = in_shared(barriers[0]), empty = in_shared(barriers[1]);
  const int works = blocks * pairs, clusters = gridDim.x / 2;
  const int last = (n - 1) / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) set_up(full + 8 * s, 1), set_up(empty + 8 * s, 16);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_barrier();

  int stage = 0;
  u32 parity = 0;
  if (warp >= 8) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp == 8 && lane == 0) {
      bool is_first = true;
      for (int work = blockIdx.x / 2; work < works; work += clusters) {
        const Tile tile = tile_at(work, blocks, pairs, band, WIDE, rank);
        const int expert = expert_of(offsets, experts, tile.row);
        for (int g = 0; g < groups; ++g) {
          if (!is_first) wait(empty + 8 * stage, parity ^ 1);
          const u32 to = ring + stage * SIZE, of_stage = scales + stage * SCALES, barrier = full + 8 * stage;
          expect(barrier, SIZE + 512);
          copy_to_both(to + rank * (A / 2), left, g * 128, tile.row + rank * 64, barrier);
          copy(to + A, right, g * 128, expert * n + tile.column, barrier);
          copy(of_stage, factors, tile.row, g, barrier);
          if (++stage == stages) stage = 0, parity ^= 1, is_first = false;
        }
      }
    }
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int group = __shfl_sync(~0u, warp / 4, 0), row = warp * 16 + lane / 4;  // and the eighth row on
    const u32 own = out + warp * 16 * PITCH;
    float sums[WIDE / 2], c[WIDE / 2];
    for (int work = blockIdx.x / 2; work < works; work += clusters) {
      const Tile tile = tile_at(work, blocks, pairs, band, WIDE, rank);
      const int column_block = tile.column / 128;
      const bool meet_at_64 = tile.column % 128 != 0;
      const long long first = (long long)expert_of_warp(offsets, experts, tile.row, lane) * (last + 1);
      const float* const scale_low = b_scales + (first + min(column_block, last)) * groups;
      const float* const scale_high = b_scales + (first + min(column_block + 1, last)) * groups;
#pragma unroll
      for (int i = 0; i < WIDE / 2; ++i) sums[i] = 0.0f;
      for (int g = 0; g < groups; ++g) {
        wait(full + 8 * stage, parity);
        const u32 at = ring + stage * SIZE, of_stage = scales + stage * SCALES;
        const u64 a = describe(at + group * (A / 2)), b = describe(at + A);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply<WIDE>(c, a + 2 * j, b + 2 * j, j > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        const float of_row[2] = {read_shared(of_stage + row * 4), read_shared(of_stage + (row + 8) * 4)};
        const float low = __ldg(scale_low + g), high = WIDE > 128 ? __ldg(scale_high + g) : low;
        const float middle = meet_at_64 ? high : low;
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < WIDE / 2; ++i) asm volatile("" : "+f"(c[i])::"memory");
        __syncwarp();  // the scales have been read by all lanes, not by this one alone
        if (lane == 0) arrive(empty + 8 * stage);
        if (lane == 1) arrive_at(empty + 8 * stage, rank ^ 1);
        if (++stage == stages) stage = 0, parity ^= 1;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float scale[3] = {of_row[h] * low, of_row[h] * (WIDE > 128 ? middle : low), of_row[h] * high};
#pragma unroll
          for (int j = 0; j < WIDE / 8; ++j)
#pragma unroll
            for (int p = 0; p < 2; ++p)
              sums[4 * j + 2 * h + p] = fmaf(c[4 * j + 2 * h + p], scale[j / 8], sums[4 * j + 2 * h + p]);
        }
      }

      // Each warp turns its 16 rows through its own part of shared memory, so that lanes store whole lines.
      __syncwarp();
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int j = 0; j < WIDE / 8; ++j) {
          u32 word;
          asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(sums[4 * j + 2 * h + 1]), "f"(sums[4 * j + 2 * h]));
          const u32 to = own + (lane / 4 + 8 * h) * PITCH + j * 16 + lane % 4 * 4;
          asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
        }
      __syncwarp();
      u16* const rows = y + (long long)(tile.row + warp * 16) * n;
      for (int i = lane; i < 16 * (WIDE / 8); i += 32) {
        const int line = i / (WIDE / 8), part = i % (WIDE / 8), column = tile.column + part * 8;
        uint4 words;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "r"(own + line * PITCH + part * 16) : "memory");
        u16* const to = rows + (long long)line * n + column;
        if (n % 8 == 0) {
          if (column < n) *reinterpret_cast<uint4*>(to) = words;
        } else {
          const u32 pieces[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
          for (int k = 0; k < 8; ++k)
            if (column + k < n) to[k] = (u16)(pieces[k / 2] >> (k % 2 * 16));
        }
      }
    }
  }
  cluster_barrier();  // nobody leaves while the other reads for it or arrives at its barriers
}
"""


def checked(answer: tuple) -> object:
    """What the driver returned besides success."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver says {answer[0]}")
    return answer[1] if len(answer) > 1 else None


def shared_bytes(wide: int) -> int:
    """Bytes of a block: stages with their scales, results of 128 rows, and what aligns them."""
    return STAGES[wide] * ((BLOCK + wide) * BLOCK + 512) + BLOCK * (2 * wide + 16) + 1024


@functools.cache
def compiled(name: str, shared: int):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    checked(driver.cuKernelSetAttribute(most, shared, kernel.handle, torch.cuda.current_device()))
    return checked(driver.cuKernelGetFunction(kernel.handle))


def launch(name: str, blocks: int, arguments: tuple, shared: int) -> None:
    """Start pairs of blocks; arguments are pairs of a value and its ctypes type."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = THREADS, 1, 1
    config.sharedMemBytes = shared
    config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    pair = driver.CUlaunchAttribute()
    pair.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    pair.value.clusterDim.x, pair.value.clusterDim.y, pair.value.clusterDim.z = 2, 1, 1
    config.attrs, config.numAttrs = [pair], 1
    checked(driver.cuLaunchKernelEx(config, compiled(name, shared), tuple(zip(*arguments, strict=True)), 0))


TYPE, SWIZZLE = driver.CUtensorMapDataType, driver.CUtensorMapSwizzle
KINDS = {
    1: (TYPE.CU_TENSOR_MAP_DATA_TYPE_UINT8, SWIZZLE.CU_TENSOR_MAP_SWIZZLE_128B),
    4: (TYPE.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, SWIZZLE.CU_TENSOR_MAP_SWIZZLE_NONE),
}
"""Bytes of a number to its type, and how tiles of it lie in shared memory."""


@functools.lru_cache(1024)
def tensor_map(address: int, rows: int, columns: int, box: int, size: int = 1):
    """How TMA finds `box` rows of 128 columns; a function of its arguments, whatever lies at the address."""
    dtype, swizzle = KINDS[size]
    return checked(
        driver.cuTensorMapEncodeTiled(
            dtype,
            2,
            address,
            [driver.cuuint64_t(columns), driver.cuuint64_t(rows)],
            [driver.cuuint64_t(columns * size)],
            [driver.cuuint32_t(BLOCK), driver.cuuint32_t(box)],
            [driver.cuuint32_t(1), driver.cuuint32_t(1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )


@functools.cache
def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def pairs_of(n: int, wide: int) -> int:
    """Pairs of tiles beside each other; the second of the last one may be empty."""
    return -(-n // (2 * wide))


@functools.cache
def width_of(blocks: int, n: int, clusters: int) -> int:
    """Rows of b in a tile whose waves end first: a tile takes as long as it is wide, and 32 more."""

    def time(wide: int) -> int:
        return -(-blocks * pairs_of(n, wide) // clusters) * (wide + 32)

    return WIDTH or min(WIDTHS, key=time)


POINTER, INT = ctypes.c_void_p, ctypes.c_int


def run(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    # TMA reads from addresses that 16 divides.
    a, b, a_scales = (each if each.data_ptr() % 16 == 0 else each.clone() for each in (a, b, a_scales))
    (rows, k), (experts, n, _) = a.shape, b.shape
    y = torch.empty(rows, n, dtype=torch.bfloat16, device=a.device)
    blocks, clusters = rows // BLOCK, multiprocessors(a.device) // 2
    wide = width_of(blocks, n, clusters)
    pairs = pairs_of(n, wide)
    launch(
        f"products<{wide}>",
        2 * min(clusters, blocks * pairs),
        (
            (tensor_map(a.data_ptr(), rows, k, BLOCK // 2), None),
            (tensor_map(b.data_ptr(), experts * n, k, wide), None),
            (tensor_map(a_scales.data_ptr(), k // BLOCK, rows, 1, 4), None),
            *((each.data_ptr(), POINTER) for each in (b_scales, offsets, y)),
            *((number, INT) for number in (n, k // BLOCK, blocks, experts, pairs, GROUP, STAGES[wide])),
        ),
        shared_bytes(wide),
    )
    return y
