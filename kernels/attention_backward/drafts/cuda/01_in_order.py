"""One kernel with five products, whose blocks add up dquery in the order of keys and hardly wait for it.

Hypothesis: to have the same bits in each call, blocks that own keys must add to a tile of dquery in turns. If all blocks
of a head begin at its last rows and go down to their diagonals, the block of the first keys leads and each other one
follows a step behind: turns come when blocks get there. Heads of a group take turns inside a step of rows, so that all
blocks keep the same pace. A block takes the tile of the p-th keys from the front and then the p-th from the back, and
all blocks have equal work; the second tiles begin in the same order again. FlashAttention 3 takes turns from the last
keys on and gives up the balance: 474 TFLOP/s in order beside 575 in any order, by its authors.
Two groups of warps have 64 keys each: scores and their changes are transposed, so weights and changes enter the products
for dvalues and dkeys from registers, and changes go through shared memory for dquery alone. A warp adds tiles of dquery
to an array of float32 by bulk reductions; whose diagonal a tile of rows is adds the last part and rounds it, so no
kernel follows. By a model of the turns, blocks wait for 4 % of their steps, and 93 % of the multiprocessors' time is steps.
Predicted: 500 TFLOP/s: 2.75 ms at 4x4096x8x4 (floor 1.74 at 790 TFLOP/s), 11 at 1x16384x8x4, 0.75 at 16x1024x8x4 and at
8x2048x16x1.
Metric: tensor_pct to 55 % at 4x4096x8x4.
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

DIM = 128
KEYS = 128
"""Keys of a tile, 64 for each group of warps."""
ROWS = 64
"""Rows of a step."""
THREADS = 384
SHARED = 1024 + 2 * KEYS * 256 + 2 * 2 * ROWS * 256 + 2 * KEYS * ROWS * 2 + ROWS * DIM * 4 + 2 * 2 * ROWS * 4
"""Bytes: what aligns them, keys and values, two stages of queries and gradients, two of changes, a tile of dquery, and two
stages of what belongs to rows."""

SOURCE = r"""
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using i64 = long long;

struct alignas(64) TensorMap { u64 words[16]; };

struct Brain {
  static constexpr bool BRAIN = true;
  static __device__ __forceinline__ u32 pack(float low, float high) {
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
  static __device__ __forceinline__ float2 unpack(u32 word) {
    return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
  }
};
struct Half {
  static constexpr bool BRAIN = false;
  static __device__ __forceinline__ u32 pack(float low, float high) {
    u32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
  static __device__ __forceinline__ float2 unpack(u32 word) {
    float2 two;
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}"
        : "=f"(two.x), "=f"(two.y) : "r"(word));
    return two;
  }
};

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
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
// 64 numbers from `column` on and as many rows from `row` as the map says.
__device__ __forceinline__ void copy(u32 to, const TensorMap& map, int column, int row, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}
__device__ __forceinline__ void copy_plain(u32 to, const void* from, u32 bytes, u32 barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
// Write floats from shared memory, or add them to what is there.
__device__ __forceinline__ void write_floats(float* to, u32 from, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void add_floats(float* to, u32 from, u32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;"
               ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
// What others wrote before they counted up is there once `turns` of them did.
__device__ __forceinline__ void wait_for_turn(const int* counter, int turns) {
  int count;
  do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
  while (count < turns);
}
__device__ __forceinline__ void count_up(int* counter) {
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(counter) : "memory");
}
// Of the two groups of warps that multiply.
__device__ __forceinline__ void both_groups() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// Rows of 128 bytes, swizzled, the eighth row 1024 bytes on: the terms of a sum lie along a row.
__device__ __forceinline__ u64 along(u32 at) {
  return (u64)((at & 0x3ffff) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}
// The same rows where each is a term of the sum, and 64 columns on begins the next part, `pitch` bytes behind.
__device__ __forceinline__ u64 across(u32 at, u32 pitch) {
  return (u64)((at & 0x3ffff) >> 4) | (u64)(pitch >> 4) << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

#define SUMS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SUMS_64 \
  SUMS_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FOUR(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define NARROW(TYPE, ACROSS)                                                                                \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"                                             \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE                                  \
               " {" SUMS_32 "}, %32, %33, add, 1, 1, " ACROSS ";\n}"                                        \
               : SIXTEEN(0), SIXTEEN(16) : "l"(a), "l"(b), "r"(add))
#define WIDE(TYPE)                                                                                          \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n"                                               \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE                                 \
               " {" SUMS_64 "}, {%64, %65, %66, %67}, %68, add, 1, 1, 1;\n}"                                \
               : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

// 64 by 64, 16 terms along rows of both; or, with ACROSS, down rows of both. c is not read if `add` is 0.
template <typename T, bool ACROSS>
__device__ __forceinline__ void multiply(float (&c)[32], u64 a, u64 b, int add) {
  if constexpr (T::BRAIN && ACROSS) NARROW("bf16", "1, 1");
  if constexpr (T::BRAIN && !ACROSS) NARROW("bf16", "0, 0");
  if constexpr (!T::BRAIN && ACROSS) NARROW("f16", "1, 1");
  if constexpr (!T::BRAIN && !ACROSS) NARROW("f16", "0, 0");
}
// c += 64 by 128, 16 terms, of which the left ones are in registers and the right ones down rows.
template <typename T> __device__ __forceinline__ void multiply_wide(float (&c)[64], const u32* a, u64 b) {
  if constexpr (T::BRAIN) WIDE("bf16");
  else WIDE("f16");
}
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wait_but() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// Products may still write these registers up to here.
template <int N> __device__ __forceinline__ void keep(float (&c)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(c[i])::"memory");
}
// Four 8x8 matrices: the address is that of row lane % 8 of matrix lane / 8.
__device__ __forceinline__ void store_matrices(u32 to, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

struct Sizes { int batch, tokens, kv, group, steps, turns; };  // steps of rows, and blocks of a head

// What belongs to rows: for each step of 64 of a head 64 logarithms to the base 2 and 64 products of y and dy. Also
// clears the counters, and gradients behind the sequences. A warp has a row.
__global__ void __launch_bounds__(256)
prepare(const uint2* y, const uint2* dy, const float* lse, const int* lengths, float* of_rows, int* counters,
        uint2* dquery, uint2* dkeys, uint2* dvalues, int brain, Sizes sizes) {
  const int lane = threadIdx.x % 32, heads = sizes.kv * sizes.group;
  const int row = blockIdx.y * 8 + threadIdx.x / 32, head = blockIdx.x % heads, b = blockIdx.x / heads;
  if (row >= sizes.steps * 64) return;
  const int length = min(__ldg(lengths + b), sizes.tokens);
  const i64 line = (i64)b * heads + head;
  if (row % 64 == 0 && lane == 0) counters[line * sizes.steps + row / 64] = 0;
  if (row == 0 && line == 0 && lane == 0) counters[(i64)sizes.batch * heads * sizes.steps] = 0;
  float sum = 0.0f;
  if (row < length) {
    const i64 at = (((i64)b * sizes.tokens + row) * heads + head) * 32 + lane;
    const uint2 left = y[at], right = dy[at];
    float2 a, c, d, e;
    if (brain) a = Brain::unpack(left.x), c = Brain::unpack(right.x), d = Brain::unpack(left.y), e = Brain::unpack(right.y);
    else a = Half::unpack(left.x), c = Half::unpack(right.x), d = Half::unpack(left.y), e = Half::unpack(right.y);
    sum = a.x * c.x + a.y * c.y + d.x * e.x + d.y * e.y;
#pragma unroll
    for (int i = 16; i; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
  } else if (row < sizes.tokens) {
    const uint2 nothing = make_uint2(0, 0);
    dquery[(((i64)b * sizes.tokens + row) * heads + head) * 32 + lane] = nothing;
    if (head % sizes.group == 0) {
      const i64 at = (((i64)b * sizes.tokens + row) * sizes.kv + head / sizes.group) * 32 + lane;
      dkeys[at] = nothing, dvalues[at] = nothing;
    }
  }
  if (lane == 0) {
    float* to = of_rows + (line * sizes.steps + row / 64) * 128 + row % 64;
    to[0] = row < length ? lse[line * sizes.tokens + row] * 1.4426950408889634f : 0.0f;
    to[64] = sum;
  }
}

// Warps 0 to 3 and 4 to 7 multiply, with 64 keys each; warp 8 copies and warp 9 adds up dquery. A block has a tile of 128
// keys from the front of its head and one from the back. Steps of 64 rows go down to the diagonal, in each the heads of
// the group. A head's tile of dquery gets the parts of its keys' tiles in their order: `counters` says how many it has.
template <typename T>
__global__ void __launch_bounds__(384, 1)
gradients(const __grid_constant__ TensorMap queries, const __grid_constant__ TensorMap keys,
          const __grid_constant__ TensorMap values, const __grid_constant__ TensorMap dys, const float* of_rows,
          const int* lengths, float* sums, int* counters, u32* dquery, u32* dkeys, u32* dvalues, float scale,
          Sizes sizes) {
  constexpr u32 TILE = 128 * 256, STAGE = 64 * 256, CHANGES = 128 * 128, PART = 64 * 128 * 4, STATS = 512;
  extern __shared__ unsigned char memory[];
  __shared__ alignas(8) u64 barriers[12];
  __shared__ int ticket;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, heads = sizes.kv * sizes.group;
  const u32 key_tile = (in_shared(memory) + 1023) & ~1023u, value_tile = key_tile + TILE;
  const u32 asked = value_tile + TILE, given = asked + 2 * STAGE, changes = given + 2 * STAGE;
  const u32 parts = changes + 2 * CHANGES, stats = parts + PART;
  const u32 first_barrier = in_shared(barriers);
  const u32 tile_full = first_barrier, tile_empty = first_barrier + 8, part_full = first_barrier + 16;
  const u32 part_empty = first_barrier + 24, asked_full = first_barrier + 32, asked_empty = first_barrier + 48;
  const u32 given_full = first_barrier + 64, given_empty = first_barrier + 80;
  if (threadIdx.x == 0) {
    set_up(tile_full, 1), set_up(tile_empty, 8), set_up(part_full, 256), set_up(part_empty, 1);
    for (int s = 0; s < 2; ++s) {
      set_up(asked_full + 8 * s, 1), set_up(asked_empty + 8 * s, 8);
      set_up(given_full + 8 * s, 1), set_up(given_empty + 8 * s, 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    // Blocks begin in the order of their tickets, so nobody waits for one that cannot begin.
    ticket = atomicAdd(counters + (i64)sizes.batch * heads * sizes.steps, 1);
  }
  __syncthreads();
  const int turn = ticket % sizes.turns, line = ticket / sizes.turns, shared_head = line % sizes.kv, b = line / sizes.kv;
  const int length = min(__ldg(lengths + b), sizes.tokens), tiles = (length + 127) / 128, steps = (length + 63) / 64;
  const bool paired = sizes.turns * 128 < sizes.tokens;
  const int mine = turn >= (paired ? (tiles + 1) / 2 : tiles) ? 0 : paired && turn != tiles - 1 - turn ? 2 : 1;
  const int first_row = b * sizes.tokens;  // of the sequence among all
  const i64 first_line = (i64)b * heads + shared_head * sizes.group;

  if (warp >= 8) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (warp == 8 && lane == 0) {
      int stage = 0, count = 0;
      for (int i = 0; i < mine; ++i) {
        const int tile = i ? tiles - 1 - turn : turn;
        if (i) wait(tile_empty, 0);
        expect(tile_full, 2 * TILE);
        for (int half = 0; half < 2; ++half) {
          copy(key_tile + half * (TILE / 2), keys, shared_head * 128 + half * 64, first_row + tile * 128, tile_full);
          copy(value_tile + half * (TILE / 2), values, shared_head * 128 + half * 64, first_row + tile * 128, tile_full);
        }
        for (int step = steps - 1; step >= 2 * tile; --step)
          for (int member = 0; member < sizes.group; ++member, ++count, stage ^= 1) {
            const int column = (shared_head * sizes.group + member) * 128, row = first_row + step * 64;
            const u32 parity = (count / 2 & 1) ^ 1;
            const float* const own = of_rows + ((first_line + member) * sizes.steps + step) * 128;
            wait(asked_empty + 8 * stage, parity);
            expect(asked_full + 8 * stage, STAGE + STATS / 2);
            for (int half = 0; half < 2; ++half)
              copy(asked + stage * STAGE + half * (STAGE / 2), queries, column + half * 64, row, asked_full + 8 * stage);
            copy_plain(stats + stage * STATS, own, STATS / 2, asked_full + 8 * stage);
            wait(given_empty + 8 * stage, parity);
            expect(given_full + 8 * stage, STAGE + STATS / 2);
            for (int half = 0; half < 2; ++half)
              copy(given + stage * STAGE + half * (STAGE / 2), dys, column + half * 64, row, given_full + 8 * stage);
            copy_plain(stats + stage * STATS + STATS / 2, own + 64, STATS / 2, given_full + 8 * stage);
          }
      }
    } else if (warp == 9 && lane == 0) {
      u32 parity = 0;
      for (int i = 0; i < mine; ++i) {
        const int tile = i ? tiles - 1 - turn : turn;
        for (int step = steps - 1; step >= 2 * tile + 2; --step)
          for (int member = 0; member < sizes.group; ++member, parity ^= 1) {
            const i64 place = (first_line + member) * sizes.steps + step;
            wait(part_full, parity);
            if (tile) {
              wait_for_turn(counters + place, tile);
              asm volatile("fence.proxy.async;" ::: "memory");
              add_floats(sums + place * 8192, parts, PART);
            } else {
              write_floats(sums + place * 8192, parts, PART);
            }
            asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
            arrive(part_empty);
            asm volatile("cp.async.bulk.wait_group 0;\nfence.proxy.async;" ::: "memory");
            count_up(counters + place);
          }
      }
    }
    __syncwarp();
    return;
  }

  asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
  const int group = __shfl_sync(~0u, warp / 4, 0), own = threadIdx.x % 128;
  const int own_key = group * 64 + warp % 4 * 16 + lane / 4;  // of a tile, and the eighth on
  const u64 of_keys = along(key_tile + group * 8192), of_values = along(value_tile + group * 8192);
  const u64 down_keys = across(key_tile + group * (TILE / 2), 0);  // a half of their columns for each group
  const float factor = scale * 1.4426950408889634f;
  // Where this lane's row of the first four matrices of changes lies, and its line of 128 bytes.
  const int matrix_row = group * 64 + warp % 4 * 16 + lane % 16;
  float s[32], d[32], dk[64], dv[64];
  int stage = 0;
  u32 parity = 0, part_parity = 1;
  for (int i = 0; i < mine; ++i) {
    const int tile = i ? tiles - 1 - turn : turn, rounds = (steps - 2 * tile) * sizes.group;
#pragma unroll
    for (int j = 0; j < 64; ++j) dk[j] = 0.0f, dv[j] = 0.0f;
    wait(tile_full, i);
    int step = steps - 1, member = 0;
    for (int round = 0; round < rounds; ++round) {
      const bool masked = step <= 2 * tile + 1 || (step == steps - 1 && length % 64);
      const u32 query_at = asked + stage * STAGE, dy_at = given + stage * STAGE, changes_at = changes + stage * CHANGES;
      wait(asked_full + 8 * stage, parity);
      begin_products();
#pragma unroll
      for (int k = 0; k < 8; ++k)
        multiply<T, false>(s, of_keys + k / 4 * (TILE / 2 >> 4) + k % 4 * 2,
                           along(query_at) + k / 4 * (STAGE / 2 >> 4) + k % 4 * 2, k > 0);
      commit();
      wait(given_full + 8 * stage, parity);
#pragma unroll
      for (int k = 0; k < 8; ++k)
        multiply<T, false>(d, of_values + k / 4 * (TILE / 2 >> 4) + k % 4 * 2,
                           along(dy_at) + k / 4 * (STAGE / 2 >> 4) + k % 4 * 2, k > 0);
      commit();
      wait_but<1>();
      keep(s);
      u32 weights[16];
      const u32 of_row = stats + stage * STATS + lane % 4 * 8;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        float2 log;
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(log.x), "=f"(log.y) : "r"(of_row + j * 32) : "memory");
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          // Rounded before the difference: both may be large.
          s[4 * j + 2 * h] = exp2_of(__fmul_rn(s[4 * j + 2 * h], factor) - log.x);
          s[4 * j + 2 * h + 1] = exp2_of(__fmul_rn(s[4 * j + 2 * h + 1], factor) - log.y);
        }
        if (masked) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int row = step * 64 + 8 * j + lane % 4 * 2 + e % 2;
            if (row >= length || tile * 128 + own_key + e / 2 * 8 > row) s[4 * j + e] = 0.0f;
          }
        }
        weights[2 * j] = T::pack(s[4 * j], s[4 * j + 1]);
        weights[2 * j + 1] = T::pack(s[4 * j + 2], s[4 * j + 3]);
      }
      wait_but<0>();
      keep(d);
      u32 moved[16];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        float2 mean;
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                     : "=f"(mean.x), "=f"(mean.y) : "r"(of_row + 256 + j * 32) : "memory");
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          d[4 * j + e] = s[4 * j + e] * (d[4 * j + e] - (e % 2 ? mean.y : mean.x));
          if (masked) {
            const int row = step * 64 + 8 * j + lane % 4 * 2 + e % 2;
            if (row >= length || tile * 128 + own_key + e / 2 * 8 > row) d[4 * j + e] = 0.0f;
          }
        }
        moved[2 * j] = T::pack(d[4 * j], d[4 * j + 1]);
        moved[2 * j + 1] = T::pack(d[4 * j + 2], d[4 * j + 3]);
      }
#pragma unroll
      for (int j = 0; j < 8; j += 2)
        store_matrices(changes_at + matrix_row * 128 + (((j + lane / 16) ^ (matrix_row % 8)) * 16), moved[2 * j],
                       moved[2 * j + 1], moved[2 * j + 2], moved[2 * j + 3]);
      begin_products();
#pragma unroll
      for (int k = 0; k < 4; ++k) multiply_wide<T>(dv, weights + 4 * k, across(dy_at, STAGE / 2) + k * (2048 >> 4));
      commit();
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      both_groups();
      begin_products();
#pragma unroll
      for (int k = 0; k < 8; ++k)
        multiply<T, true>(s, across(changes_at, 0) + k * (2048 >> 4), down_keys + k * (2048 >> 4), k > 0);
      commit();
#pragma unroll
      for (int k = 0; k < 4; ++k) multiply_wide<T>(dk, moved + 4 * k, across(query_at, STAGE / 2) + k * (2048 >> 4));
      commit();
      wait_but<1>();
      keep(s), keep(dv);
      if (lane == 0) arrive(given_empty + 8 * stage);
      const i64 place = (first_line + member) * sizes.steps + step;
      if (step > 2 * tile + 1) {
        wait(part_empty, part_parity);
        part_parity ^= 1;
#pragma unroll
        for (int j = 0; j < 8; ++j)
          asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                       ::"r"(parts + group * (PART / 2) + (j * 128 + own) * 16), "f"(s[4 * j]), "f"(s[4 * j + 1]),
                       "f"(s[4 * j + 2]), "f"(s[4 * j + 3]) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        arrive(part_full);
      } else {
        if (tile) {
          if (lane == 0) wait_for_turn(counters + place, tile);
          __syncwarp();
          const float* const before = sums + place * 8192 + group * 4096 + own * 4;
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            float4 four;
            asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w) : "l"(before + j * 512) : "memory");
            s[4 * j] += four.x, s[4 * j + 1] += four.y, s[4 * j + 2] += four.z, s[4 * j + 3] += four.w;
          }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = step * 64 + warp % 4 * 16 + lane / 4 + 8 * h;
          u32* const to = dquery + (((i64)first_row + row) * heads + shared_head * sizes.group + member) * 64;
          if (row < length)
#pragma unroll
            for (int j = 0; j < 8; ++j)
              to[group * 32 + j * 4 + lane % 4] = T::pack(s[4 * j + 2 * h] * scale, s[4 * j + 2 * h + 1] * scale);
        }
      }
      wait_but<0>();
      keep(dk);
      if (lane == 0) arrive(asked_empty + 8 * stage);
      parity ^= stage, stage ^= 1;
      if (++member == sizes.group) member = 0, --step;
    }
    if (lane == 0) arrive(tile_empty);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int key = tile * 128 + own_key + 8 * h;
      const i64 at = (((i64)first_row + key) * sizes.kv + shared_head) * 64 + lane % 4;
      if (key < length)
#pragma unroll
        for (int j = 0; j < 16; ++j) {
          dkeys[at + j * 4] = T::pack(dk[4 * j + 2 * h] * scale, dk[4 * j + 2 * h + 1] * scale);
          dvalues[at + j * 4] = T::pack(dv[4 * j + 2 * h], dv[4 * j + 2 * h + 1]);
        }
    }
  }
}
"""


def checked(answer: tuple) -> object:
    """What the driver returned besides success."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver says {answer[0]}")
    return answer[1] if len(answer) > 1 else None


@functools.cache
def compiled(name: str):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if name != "prepare":
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuKernelSetAttribute(most, SHARED, kernel.handle, torch.cuda.current_device()))
    return checked(driver.cuKernelGetFunction(kernel.handle))


def launch(name: str, grid: tuple[int, int], threads: int, shared: int, arguments: tuple) -> None:
    """Arguments are pairs of a value and its ctypes type."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = *grid, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared
    config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    checked(driver.cuLaunchKernelEx(config, compiled(name), tuple(zip(*arguments, strict=True)), 0))


@functools.lru_cache(1024)
def tensor_map(address: int, rows: int, columns: int, box: int):
    """How TMA finds `box` rows of 64 columns; a function of its arguments, whatever lies at the address."""
    return checked(
        driver.cuTensorMapEncodeTiled(
            driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
            2,
            address,
            [driver.cuuint64_t(columns), driver.cuuint64_t(rows)],
            [driver.cuuint64_t(columns * 2)],
            [driver.cuuint32_t(64), driver.cuuint32_t(box)],
            [driver.cuuint32_t(1), driver.cuuint32_t(1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )


@functools.cache
def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def turns_of(tokens: int, heads: int, blocks_at_once: int) -> int:
    """Blocks of a head of keys: each has a tile from either end if there are enough of them for the device, and it holds
    all of a head at a time, since the second tile of a block waits for that of a later one; else a single tile."""
    tiles = -(-tokens // KEYS)
    pairs = -(-tiles // 2)
    return pairs if pairs <= blocks_at_once <= heads * pairs else tiles


class Sizes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("batch", "tokens", "kv", "group", "steps", "turns")]


POINTER, INT, FLOAT = ctypes.c_void_p, ctypes.c_int, ctypes.c_float


def run(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, y: torch.Tensor, dy: torch.Tensor,
    lse: torch.Tensor, lengths: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    # TMA reads from addresses that 16 divides.
    query, keys, values, y, dy = (
        each if each.data_ptr() % 16 == 0 else each.clone() for each in (query, keys, values, y, dy)
    )
    batch, tokens, heads, _ = query.shape
    kv = keys.shape[2]
    results = dquery, dkeys, dvalues = torch.empty_like(query), torch.empty_like(keys), torch.empty_like(values)
    if not query.numel():
        return results
    steps, turns = -(-tokens // ROWS), turns_of(tokens, batch * kv, multiprocessors(query.device))
    sizes = Sizes(batch, tokens, kv, heads // kv, steps, turns)
    tiles = batch * heads * steps
    of_rows = torch.empty(tiles * 2 * ROWS, dtype=torch.float32, device=query.device)
    counters = torch.empty(tiles + 1, dtype=torch.int32, device=query.device)
    sums = torch.empty(tiles * ROWS * DIM, dtype=torch.float32, device=query.device)
    is_brain = query.dtype == torch.bfloat16
    pointers = (y, dy, lse, lengths, of_rows, counters, dquery, dkeys, dvalues)
    launch(
        "prepare", (batch * heads, steps * ROWS // 8), 256, 0,
        (*((each.data_ptr(), POINTER) for each in pointers), (int(is_brain), INT), (sizes, None)),
    )  # fmt: skip
    launch(
        f"gradients<{'Brain' if is_brain else 'Half'}>", (batch * kv * turns, 1), THREADS, SHARED,
        (
            (tensor_map(query.data_ptr(), batch * tokens, heads * DIM, ROWS), None),
            (tensor_map(keys.data_ptr(), batch * tokens, kv * DIM, KEYS), None),
            (tensor_map(values.data_ptr(), batch * tokens, kv * DIM, KEYS), None),
            (tensor_map(dy.data_ptr(), batch * tokens, heads * DIM, ROWS), None),
            *((each.data_ptr(), POINTER) for each in (of_rows, lengths, sums, counters, dquery, dkeys, dvalues)),
            (DIM**-0.5, FLOAT), (sizes, None),
        ),
    )  # fmt: skip
    return results
