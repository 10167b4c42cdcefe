"""Blocks of a cluster share tokens: each reads a part of them and sends it to all that multiply the same part of k.

Hypothesis: with few tokens v1 reads them in each block, from L2: at 128x4096x7168 four times as many bytes as weights,
147 MB in 25 us, and at 64x7168x16384 half as many, 184 MB in 38 us: 4.9 to 5.9 TB/s, which is what L2 gives. Two or four
blocks with other rows of weights and the same part of k take a slice of the tokens each and send it to the others
by multicast. A stage is free when all of them have read it. The split of k was held to cost eight times what sums in
shared memory take, so 128 tokens were never split.
Predicted: 31 us at 64x7168x16384 (v1 37.8, DeepGEMM 34.3) and 13 us at 128x4096x7168 (v1 25.5, Triton 17.8); many
tokens as before.
Metric: l2_busy_pct from 80 to 60 % at 64x7168x16384, dram_busy_pct to 80.
"""

import ctypes
import functools
import itertools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

BLOCK = 128
"""Columns of k that share a scale, those of a stage; and rows of a in a tile of many tokens."""
WIDTHS = (192, 128)
"""Rows of b in such a tile."""
GROUP = 16
"""Row blocks that go through b together, so that both stay in L2."""
STAGES = {192: 4, 128: 5}
THREADS = 384

FEW = 256
"""Tokens up to which weights are the rows of products."""
MOST_TOKENS = 128
"""Tokens of a block then."""
SPLITS = (1, 2, 4, 8)
"""Parts that k may have, each a block of a cluster."""
LEAST_STEPS = 4
"""Steps of a part at least."""
MOST_STAGES = 8
SHARES = (1, 2, 4)
"""Blocks that may share the reading of tokens; each takes 8 of them at least."""
TOKEN_COST = 0.8
"""Share of the time of a byte of weights that a byte of tokens takes, which comes from L2."""
SUM_COST = 2
"""Bytes that a block reads in the time that a byte of a part's sums takes to be written, read and added."""
PART_COST = 64 * 1024
"""Bytes that a block reads in the time that parts of k wait for each other."""
STEP_COST = 8 * 1024
"""Bytes that a block reads in the least time of a stage: its copy, its products and two barriers."""
SHARED = 227 * 1024
"""Bytes of shared memory of a block, if it is alone."""

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
// At the barrier of another block that has this one's place in its shared memory. Release to the cluster would wait
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
// The same into all blocks of the cluster whose bits are set, and to the barriers of all.
__device__ __forceinline__ void copy_to_all(u32 to, const TensorMap& map, int column, int row, u32 barrier, u16 blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;"
      ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"(blocks) : "memory");
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

struct Tile { int row, column; };

// Tile number `work` of a block: bands of row blocks go through b together, pairs of tiles lie side by side.
__device__ __forceinline__ Tile tile_at(int work, int blocks, int pairs, int band, int wide, int rank) {
  const int first = work / (band * pairs) * band, inside = work % (band * pairs), rows = min(band, blocks - first);
  return {(first + inside % rows) * 128, (inside / rows * 2 + rank) * wide};
}

// For many tokens. Warps 0 to 3 and 4 to 7 have 64 rows of a tile each, warp 8 copies. A stage has 128 rows of a, of which each block
// of a pair copies a half for both, WIDE rows of b, and the scales of the rows, by tensor copies alone: racecheck does
// not see who waits at which of these barriers, and would call a store or a plain bulk copy into a stage a race. Scales
// of b change at multiples of 128 rows, so the two in a tile meet 64 or 128 rows behind its first.
template <int WIDE>
__global__ void __launch_bounds__(384, 1)
products(const __grid_constant__ TensorMap left, const __grid_constant__ TensorMap right,
         const __grid_constant__ TensorMap factors, const float* b_scales, u16* y, int m, int n, int groups, int blocks,
         int pairs, int band, int stages) {
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
        for (int g = 0; g < groups; ++g) {
          if (!is_first) wait(empty + 8 * stage, parity ^ 1);
          const u32 to = ring + stage * SIZE, of_stage = scales + stage * SCALES, barrier = full + 8 * stage;
          expect(barrier, SIZE + 512);
          copy_to_all(to + rank * (A / 2), left, g * 128, tile.row + rank * 64, barrier, 3);
          copy(to + A, right, g * 128, tile.column, barrier);
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
      const float* const scale_low = b_scales + (long long)min(column_block, last) * groups;
      const float* const scale_high = b_scales + (long long)min(column_block + 1, last) * groups;
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
        if (tile.row + warp * 16 + line >= m) continue;
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

#define WGMMA(TOKENS, SUMS, A, B, ADD, ...)                                                                        \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ADD ", 0;\n"                                                \
               "wgmma.mma_async.sync.aligned.m64n" TOKENS "k32.f32.e4m3.e4m3 {" SUMS "}, " A ", " B ", add, 1, 1;\n}" \
               : __VA_ARGS__ : "l"(a), "l"(b), "r"(add))
#define SUMS_4 "%0, %1, %2, %3"
#define SUMS_8 SUMS_4 ", %4, %5, %6, %7"
#define SUMS_16 SUMS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SUMS_32 SUMS_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"

// c += 64 rows of b by TOKENS rows of a, 32 columns; c is not read if `add` is 0.
template <int TOKENS> __device__ __forceinline__ void multiply_few(float (&c)[TOKENS / 2], u64 a, u64 b, int add) {
  if constexpr (TOKENS == 8) WGMMA("8", SUMS_4, "%4", "%5", "%6", FOUR(0));
  if constexpr (TOKENS == 16) WGMMA("16", SUMS_8, "%8", "%9", "%10", FOUR(0), FOUR(4));
  if constexpr (TOKENS == 32) WGMMA("32", SUMS_16, "%16", "%17", "%18", SIXTEEN(0));
  if constexpr (TOKENS == 64) WGMMA("64", SUMS_32, "%32", "%33", "%34", SIXTEEN(0), SIXTEEN(16));
  if constexpr (TOKENS == 128)
    WGMMA("128", SUMS_64, "%64", "%65", "%66", SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48));
}

__device__ __forceinline__ float4 read_remote(u32 own, u32 rank) {
  float4 there;
  asm volatile(
      "{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %4, %5;\nld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [at];\n}"
      : "=f"(there.x), "=f"(there.y), "=f"(there.z), "=f"(there.w) : "r"(own), "r"(rank) : "memory");
  return there;
}
__device__ __forceinline__ float2 read_two(u32 at) {
  float2 two;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(two.x), "=f"(two.y) : "r"(at) : "memory");
  return two;
}
__device__ __forceinline__ u16 rounded(float x) {
  u16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}

// For few tokens, where b is what is read. A cluster has `shares` tiles of `rows` rows of b, and `parts` parts of k for
// each: block x of it has part x % parts, and those with the same part share the reading of a. Block y: TOKENS tokens. A group of four warps for 64 rows of b, and a warp that fills the ring: a stage has room
// for 64 rows of b a group, of which `rows` are copied, for TOKENS of a and for their scales.
template <int TOKENS>
__global__ void __launch_bounds__(TOKENS > 64 ? 288 : 544, 1)
few(const __grid_constant__ TensorMap right, const __grid_constant__ TensorMap left,
    const __grid_constant__ TensorMap factors, const float* b_scales, u16* y, int m, int n, int groups, int rows,
    int stages, int parts, int shares) {
  extern __shared__ unsigned char memory[];
  __shared__ alignas(8) u64 barriers[2][32];
  constexpr u32 SCALES = TOKENS * 4 < 128 ? 128 : TOKENS * 4;  // copies begin at multiples of 128 bytes
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, workers = blockDim.x - 32;
  const int blocks = parts * shares, rank = blockIdx.x % blocks, part = rank % parts, share = rank / parts;
  const int first = (blockIdx.x / blocks * shares + share) * rows;
  const u32 ring = (in_shared(memory) + 1023) & ~1023u, high = workers / 2, size = (high + TOKENS) * 128;
  const u32 scales = ring + stages * size, full = in_shared(barriers[0]), empty = in_shared(barriers[1]);
  const int each = (groups + parts - 1) / parts, begin = part * each, count = min(each, groups - begin);
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) set_up(full + 8 * s, 1), set_up(empty + 8 * s, workers / 32 * shares);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (shares > 1) cluster_barrier();
  else __syncthreads();

  float sums[TOKENS / 2], c[TOKENS / 2];
#pragma unroll
  for (int i = 0; i < TOKENS / 2; ++i) sums[i] = 0.0f;
  int stage = 0;
  u32 parity = 0;
  if (warp * 32 == workers) {
    if (lane == 0) {
      const int slice = TOKENS / shares;
      u32 same_part = 0;
      for (int s = 0; s < shares; ++s) same_part |= 1u << (part + s * parts);
      for (int i = 0; i < count; ++i) {
        if (i >= stages) wait(empty + 8 * stage, parity ^ 1);
        const u32 to = ring + stage * size, barrier = full + 8 * stage;
        expect(barrier, (rows + TOKENS) * 128 + TOKENS * 4);
        copy(to, right, (begin + i) * 128, first, barrier);
        const u32 own = to + (high + share * slice) * 128;
        const int token = blockIdx.y * TOKENS + share * slice;
        if (shares > 1) copy_to_all(own, left, (begin + i) * 128, token, barrier, (u16)same_part);
        else copy(own, left, (begin + i) * 128, token, barrier);
        copy(scales + stage * SCALES, factors, blockIdx.y * TOKENS, begin + i, barrier);
        if (++stage == stages) stage = 0, parity ^= 1;
      }
    }
    __syncwarp();
  } else {
    const u32 own = warp / 4 * 8192;
    const int of_warp = min(first + warp * 16, n - 1) / 128;  // its 16 rows share their scales
    const float* const of_rows = b_scales + (long long)of_warp * groups + begin;
    for (int i = 0; i < count; ++i) {
      wait(full + 8 * stage, parity);
      const u32 at = ring + stage * size, of_stage = scales + stage * SCALES + lane % 4 * 8;
      const u64 a = describe(at + own), b = describe(at + high * 128);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int j = 0; j < 4; ++j) multiply_few<TOKENS>(c, a + 2 * j, b + 2 * j, j > 0);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      const float of_row = __ldg(of_rows + i);
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
      for (int t = 0; t < TOKENS / 2; ++t) asm volatile("" : "+f"(c[t])::"memory");
#pragma unroll
      for (int t = 0; t < TOKENS / 8; ++t) {
        const float2 of_token = read_two(of_stage + t * 32), scale = {of_token.x * of_row, of_token.y * of_row};
        sums[4 * t] = fmaf(c[4 * t], scale.x, sums[4 * t]);
        sums[4 * t + 1] = fmaf(c[4 * t + 1], scale.y, sums[4 * t + 1]);
        sums[4 * t + 2] = fmaf(c[4 * t + 2], scale.x, sums[4 * t + 2]);
        sums[4 * t + 3] = fmaf(c[4 * t + 3], scale.y, sums[4 * t + 3]);
      }
      __syncwarp();  // the scales have been read by all lanes, not by this one alone
      if (shares == 1 && lane == 0) arrive(empty + 8 * stage);
      if (shares > 1 && lane < shares) arrive_at(empty + 8 * stage, part + lane * parts);
      if (++stage == stages) stage = 0, parity ^= 1;
    }
  }

  // Sums where the ring was: those of a token lie together, and 4 further than its rows, so that lanes share no bank.
  const int pitch = rows + 4;
  float* to_add = reinterpret_cast<float*>(memory + (ring - in_shared(memory)));
  __syncthreads();
  if (threadIdx.x < workers) {
    const int row = warp * 16 + lane / 4;
#pragma unroll
    for (int t = 0; t < TOKENS / 8; ++t) {
      float* to = to_add + (8 * t + lane % 4 * 2) * pitch + row;
      if (row < rows) to[0] = sums[4 * t], to[pitch] = sums[4 * t + 1];
      if (row + 8 < rows) to[8] = sums[4 * t + 2], to[pitch + 8] = sums[4 * t + 3];
    }
  }
  if (parts > 1) cluster_barrier();
  else __syncthreads();
  const int quarter = rows / 4, some = min(TOKENS, m - (int)blockIdx.y * TOKENS) * quarter;
  for (int i = part * blockDim.x + threadIdx.x; i < some; i += parts * blockDim.x) {
    const int token = i / quarter, row = (i - token * quarter) * 4;
    const float* own = to_add + token * pitch + row;
    float4 of_part[8], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (parts > 1) {
#pragma unroll
      for (int p = 0; p < 8; ++p)
        if (p < parts) of_part[p] = read_remote(in_shared(own), share * parts + p);
#pragma unroll
      for (int p = 0; p < 8; ++p)
        if (p < parts) sum.x += of_part[p].x, sum.y += of_part[p].y, sum.z += of_part[p].z, sum.w += of_part[p].w;
    } else {
      sum = *reinterpret_cast<const float4*>(own);
    }
    const float four[4] = {sum.x, sum.y, sum.z, sum.w};
    u16* to = y + (long long)(blockIdx.y * TOKENS + token) * n + first + row;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (first + row + e < n) to[e] = rounded(four[e]);
  }
  if (blocks > 1) cluster_barrier();  // nobody leaves while others read its sums, or arrive at its barriers
}
"""


def checked(answer: tuple) -> object:
    """What the driver returned besides success."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver says {answer[0]}")
    return answer[1] if len(answer) > 1 else None


def shared_bytes(wide: int) -> int:
    """Bytes of a block for many tokens: stages with their scales, results of 128 rows, and what aligns them."""
    return STAGES[wide] * ((BLOCK + wide) * BLOCK + 512) + BLOCK * (2 * wide + 16) + 1024


@functools.cache
def compiled(name: str):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    checked(driver.cuKernelSetAttribute(most, SHARED - 1024, kernel.handle, torch.cuda.current_device()))
    return checked(driver.cuKernelGetFunction(kernel.handle))


def configure(grid: tuple[int, int], threads: int, shared: int, cluster: int):
    """A launch of blocks in clusters along x."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = *grid, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared
    config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    if cluster > 1:
        together = driver.CUlaunchAttribute()
        together.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        together.value.clusterDim.x, together.value.clusterDim.y, together.value.clusterDim.z = cluster, 1, 1
        config.attrs, config.numAttrs = [together], 1
    return config


def launch(name: str, config, arguments: tuple) -> None:
    """Arguments are pairs of a value and its ctypes type."""
    checked(driver.cuLaunchKernelEx(config, compiled(name), tuple(zip(*arguments, strict=True)), 0))


TYPE, SWIZZLE = driver.CUtensorMapDataType, driver.CUtensorMapSwizzle
KINDS = {
    1: (TYPE.CU_TENSOR_MAP_DATA_TYPE_UINT8, SWIZZLE.CU_TENSOR_MAP_SWIZZLE_128B),
    4: (TYPE.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, SWIZZLE.CU_TENSOR_MAP_SWIZZLE_NONE),
}
"""Bytes of a number to its type, and how tiles of it lie in shared memory."""


@functools.lru_cache(1024)
def tensor_map(address: int, rows: int, columns: int, box: int, width: int = BLOCK, size: int = 1):
    """How TMA finds `box` rows of `width` columns; a function of its arguments, whatever lies at the address."""
    dtype, swizzle = KINDS[size]
    return checked(
        driver.cuTensorMapEncodeTiled(
            dtype,
            2,
            address,
            [driver.cuuint64_t(columns), driver.cuuint64_t(rows)],
            [driver.cuuint64_t(columns * size)],
            [driver.cuuint32_t(width), driver.cuuint32_t(box)],
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


def most_rows(tokens: int) -> int:
    """Rows of weights of a block at most: 128 tokens take twice the registers."""
    return 128 if tokens > 64 else 256


@functools.cache
def clusters_at_once(tokens: int, device: torch.device) -> tuple[int, ...]:
    """Clusters that the device holds for each of SPLITS, of blocks that have a multiprocessor each."""
    threads, counts = most_rows(tokens) * 2 + 32, [multiprocessors(device)]
    for blocks in SPLITS[1:]:
        config = configure((blocks, 1), threads, SHARED - 1024, blocks)
        counts.append(checked(driver.cuOccupancyMaxActiveClusters(compiled(f"few<{tokens}>"), config)))
    return tuple(counts)


@functools.cache
def split_work(n: int, steps: int, tokens: int, groups: int, at_once: tuple[int, ...]) -> tuple[int, int, int]:
    """Rows of a block, parts of k and blocks that share tokens, such that blocks take least time; `at_once` has the
    clusters that the device holds, for each of SPLITS."""
    choices = []
    for parts, shares in itertools.product(SPLITS, SHARES):
        if parts * shares not in SPLITS or tokens < 8 * shares or (parts > 1 and steps < parts * LEAST_STEPS):
            continue
        clusters = at_once[SPLITS.index(parts * shares)]
        waves = -(-n * groups // (clusters * shares * most_rows(tokens)))
        rows = -(-n * groups // (clusters * shares * waves * 16)) * 16
        waves = -(-groups * -(-n // (rows * shares)) // clusters)
        step = max(BLOCK * (rows + TOKEN_COST * tokens / shares), STEP_COST)
        of_parts = SUM_COST * 4 * tokens * rows + PART_COST if parts > 1 else 0
        choices.append((waves * (-(-steps // parts) * step + of_parts), rows, parts, shares))
    _, *choice = min(choices)
    return tuple(choice)


def pairs_of(n: int, wide: int) -> int:
    """Pairs of tiles beside each other; the second of the last one may be empty."""
    return -(-n // (2 * wide))


@functools.cache
def width_of(blocks: int, n: int, clusters: int) -> int:
    """Rows of b in a tile whose waves end first: a tile takes as long as it is wide, and 32 more."""

    def time(wide: int) -> int:
        return -(-blocks * pairs_of(n, wide) // clusters) * (wide + 32)

    return min(WIDTHS, key=time)


POINTER, INT = ctypes.c_void_p, ctypes.c_int


def run(a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
    # TMA reads from addresses that 16 divides.
    a, b, a_scales = (each if each.data_ptr() % 16 == 0 else each.clone() for each in (a, b, a_scales))
    y = torch.empty(len(a), len(b), dtype=torch.bfloat16, device=a.device)
    multiply = multiply_few if len(a) <= FEW else multiply_many
    multiply(a, a_scales, b, b_scales, y)
    return y


def multiply_many(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, y: torch.Tensor
) -> None:
    """Write the product in tiles of 128 tokens, by pairs of blocks that stay."""
    (m, k), n = a.shape, len(b)
    blocks, clusters = -(-m // BLOCK), multiprocessors(a.device) // 2
    wide = width_of(blocks, n, clusters)
    pairs = pairs_of(n, wide)
    launch(
        f"products<{wide}>",
        configure((2 * min(clusters, blocks * pairs), 1), THREADS, shared_bytes(wide), 2),
        (
            (tensor_map(a.data_ptr(), m, k, BLOCK // 2), None),
            (tensor_map(b.data_ptr(), n, k, wide), None),
            (tensor_map(a_scales.data_ptr(), k // BLOCK, a_scales.shape[1], 1, BLOCK, 4), None),
            *((each.data_ptr(), POINTER) for each in (b_scales, y)),
            *((number, INT) for number in (m, n, k // BLOCK, blocks, pairs, GROUP, STAGES[wide])),
        ),
    )


def multiply_few(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, y: torch.Tensor
) -> None:
    """Write the product with weights as rows, k and the reading of tokens split over the blocks of clusters."""
    (m, k), n = a.shape, len(b)
    tokens = next(size for size in (8, 16, 32, 64, MOST_TOKENS) if m <= size or size == MOST_TOKENS)
    groups, steps = -(-m // tokens), k // BLOCK
    rows, parts, shares = split_work(n, steps, tokens, groups, clusters_at_once(tokens, a.device))
    warps = 4 * -(-rows // 64)
    of_scales = max(tokens * 4, 128)
    size = (16 * warps + tokens) * BLOCK + of_scales
    room = SHARED - 2048 - 1024
    stages = min(MOST_STAGES, -(-steps // parts), room // size)
    stages = max(stages, -(-tokens * (rows + 4) * 4 // (size - of_scales)))  # the sums need room too
    launch(
        f"few<{tokens}>",
        configure(
            (-(-n // (rows * shares)) * shares * parts, groups), 32 * warps + 32, stages * size + 1024, parts * shares
        ),
        (
            (tensor_map(b.data_ptr(), n, k, rows), None),
            (tensor_map(a.data_ptr(), m, k, tokens // shares), None),
            (tensor_map(a_scales.data_ptr(), steps, a_scales.shape[1], 1, tokens, 4), None),
            *((each.data_ptr(), POINTER) for each in (b_scales, y)),
            *((number, INT) for number in (m, n, steps, rows, stages, parts, shares)),
        ),
    )
