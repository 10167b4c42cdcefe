"""With many rows the groups take turns: one's exponentials run under the other's products, and its own values.

Hypothesis: with 16 new tokens version 1 takes 156 us where reading takes 129. Both of its groups wait for the same
tile, so they multiply at the same time and take exponentials at the same time. Here a group gives out the scores of
the next tile and the values of this one together, then lets the other do so, and takes its exponentials meanwhile.
The warps that copy leave it the registers for that. With few rows the groups have tiles of their own, as before.
Predicted: 146 us at 16 tokens of 32 full sequences of 4096; the others as they are.
Metric: tensor_pct to 60 % at 32x16x8x8x128-256x16.
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

WIDTH = 128
"""Numbers of a head that a tile has room for; heads with fewer are padded with zeros."""
VECTOR = 8
"""Numbers that a thread copies at a time: heads of other sizes, and larger ones, take a plain kernel."""
THREADS = 384
JOINED = 16
"""Rows that a block of the second kernel joins."""

SOURCE = r"""
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using i64 = long long;

struct bf16 {
  static constexpr bool BRAIN = true;
  u16 bits;
};
struct fp16 {
  static constexpr bool BRAIN = false;
  u16 bits;
};

#define NOTHING __uint_as_float(0xff800000u)
constexpr int TILE = 128, WIDTH = 128, HALF = TILE * 128, SLOT = 2 * HALF;  // halves of 64 numbers, 128 bytes a row

template <typename T> __device__ __forceinline__ u32 join(float low, float high) {
  u32 word;
  if constexpr (T::BRAIN) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
template <typename T> __device__ __forceinline__ float widen(T x) {
  if constexpr (T::BRAIN) return __uint_as_float((u32)x.bits << 16);
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ float power(float x) {  // of two
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// What to subtract of scores before their exponentials: infinite ones stay so, and none becomes NaN.
__device__ __forceinline__ float finite(float top) { return fabsf(top) == -NOTHING ? 0.0f : top; }

__device__ __forceinline__ u32 in_shared(const void* at) { return (u32)__cvta_generic_to_shared(at); }
__device__ __forceinline__ void set_up(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Once this thread's copies so far are there.
__device__ __forceinline__ void arrive_after_copies(u32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
      ::"r"(barrier), "r"(parity) : "memory");
}
// What threads copied becomes visible to tensor cores.
__device__ __forceinline__ void wait_for_copies(u32 barrier, u32 parity) {
  wait(barrier, parity);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// 16 bytes, or as many zeros.
__device__ __forceinline__ void copy(u32 to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

// Of the two groups of warps that multiply.
__device__ __forceinline__ void both_groups() { asm volatile("bar.sync 1, 256;" ::: "memory"); }
// A group waits for its turn at tensor cores, which the other gives it.
__device__ __forceinline__ void wait_for_turn(int group) { asm volatile("bar.sync %0, 256;" ::"r"(2 + group) : "memory"); }
__device__ __forceinline__ void give_turn(int group) { asm volatile("bar.arrive %0, 256;" ::"r"(3 - group) : "memory"); }

// The same from `number * pitch` bytes on. The sum is not for the compiler to keep, which would spill it.
__device__ __forceinline__ void copy_row(u32 to, const void* from, u32 number, u32 pitch, bool there) {
  asm volatile(
      "{\n.reg .b64 at;\nmad.wide.u32 at, %2, %3, %1;\ncp.async.cg.shared.global.L2::128B [%0], [at], 16, %4;\n}"
      ::"r"(to), "l"(from), "r"(number), "r"(pitch), "r"(there ? 16 : 0) : "memory");
}

// Rows of 128 bytes, swizzled, the eighth row 1024 bytes on: the terms of a sum lie along a row.
__device__ __forceinline__ u64 along(u32 at) {
  return (u64)((at & 0x3ffff) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}
// The same rows where each is a term of the sum, and 64 columns on begins the next half.
__device__ __forceinline__ u64 across(u32 at) {
  return (u64)((at & 0x3ffff) >> 4) | (u64)(HALF >> 4) << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

#define SUMS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SUMS_64 \
  SUMS_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FOUR(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define SCORES(TYPE)                                                                                      \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"                                           \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE                               \
               " {" SUMS_64 "}, %64, %65, add, 1, 1, 0, 0;\n}"                                            \
               : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48) : "l"(a), "l"(b), "r"(add))
#define VALUES(TYPE)                                                                                  \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n"                                             \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE                               \
               " {" SUMS_64 "}, {%64, %65, %66, %67}, %68, add, 1, 1, 1;\n}"                              \
               : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)                                        \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

// 64 rows by 128 tokens, 16 terms.
template <typename T> __device__ __forceinline__ void add_scores(float (&c)[64], u64 a, u64 b, int add) {
  if constexpr (T::BRAIN) SCORES("bf16");
  else SCORES("f16");
}
// 64 rows by 128 numbers of values, 16 tokens, whose weights are in registers.
template <typename T> __device__ __forceinline__ void add_values(float (&c)[64], const u32* a, u64 b) {
  if constexpr (T::BRAIN) VALUES("bf16");
  else VALUES("f16");
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

struct Sizes { int batch, tokens, kv, group, slots, page, dim, bands; };  // bands: of the rows that a block holds

__device__ __forceinline__ int length_of(const int* lengths, int b, const Sizes& sizes) {
  return min(__ldg(lengths + b), sizes.slots * sizes.page);
}
__device__ __forceinline__ int tiles_of(int length) { return max(1, (length + TILE - 1) / TILE); }

// Where a row of queries or results of a head begins.
__device__ __forceinline__ i64 place_in(const Sizes& sizes, int b, int head, int row) {
  const int token = row / sizes.group, inside = row - token * sizes.group;
  return ((((i64)b * sizes.tokens + token) * sizes.kv + head) * sizes.group + inside) * sizes.dim;
}

// A block's share of a line of tiles: sequences in order, in each some heads and bands, in each its tiles. With `lines`
// equal to their number each line has one head and band, and blocks side by side read the same tokens' other heads at
// about the same time; with one line it has them all.
struct Walk {
  i64 left;                            // tiles
  int b, inside, first, length, last;  // sequence, head and band, and tiles of them that are this block's
  int line, many;                      // its first head and band, and how many it has

  // A warp finds where its block begins.
  __device__ Walk(const int* lengths, const Sizes& sizes, int lines) {
    const int lane = threadIdx.x % 32;
    line = blockIdx.x % lines;
    many = sizes.kv * sizes.bands / lines;
    i64 all = 0;
#pragma unroll 4
    for (int i = lane; i < sizes.batch; i += 32) all += tiles_of(length_of(lengths, i, sizes));
#pragma unroll
    for (int d = 16; d; d /= 2) all += __shfl_xor_sync(~0u, all, d);
    all *= many;
    const i64 blocks = min((i64)(gridDim.x / lines), all), block = blockIdx.x / lines;  // none of them is idle
    i64 at = all * block / blocks;
    left = block < blocks ? all * (block + 1) / blocks - at : 0;
    if (left == 0) return;
    for (int start = 0;; start += 32) {
      const int i = start + lane;
      const int own = i < sizes.batch ? tiles_of(length_of(lengths, i, sizes)) : 0;
      i64 up_to = own;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const i64 before = __shfl_up_sync(~0u, up_to, d);
        if (lane >= d) up_to += before;
      }
      up_to *= many;
      const u32 beyond = __ballot_sync(~0u, up_to > at);
      if (beyond) {
        const int winner = __ffs(beyond) - 1;
        const i64 inner = at - __shfl_sync(~0u, up_to - (i64)own * many, winner);
        const int tiles = __shfl_sync(~0u, own, winner);
        b = start + winner;
        inside = line + (int)(inner / tiles);
        first = (int)(inner % tiles);
        break;
      }
      at -= __shfl_sync(~0u, up_to, 31);
    }
    length = length_of(lengths, b, sizes);
    last = (int)min((i64)tiles_of(length), first + left);
  }
  __device__ bool ends() const { return last == tiles_of(length); }
  __device__ bool is_whole() const { return first == 0 && ends(); }
  __device__ void advance(const int* lengths, const Sizes& sizes) {
    left -= last - first;
    first = 0;
    if (left == 0) return;
    if (++inside == line + many) {
      inside = line;
      length = length_of(lengths, ++b, sizes);
    }
    last = (int)min((i64)tiles_of(length), left);
  }
};

// Warps 0 to 3 and 4 to 7 multiply, 8 to 11 copy. MANY: each group has 64 rows of a band of 128, and all tiles; else
// both have the 64 rows of a band, and every other tile. A block's first piece of a head may lack its beginning, and
// its last one its end: those go to `parts`, two places a block, and `cut` says which it wrote.
template <typename T, bool MANY>
__global__ void __launch_bounds__(384, 1)
attend(const T* query, const T* keys, const T* values, const int* table, const int* lengths, T* y, float* parts,
       float* logs, int2* cut, float4* exchange, float scale, int lines, Sizes sizes) {
  constexpr int ROWS = MANY ? 128 : 64, ASKED = ROWS * 256, SLOTS = MANY ? 5 : 6, STEP = MANY ? 1 : 2;
  constexpr int OF_COPIES = MANY ? 88 : 104, OF_PRODUCTS = MANY ? 208 : 200;  // registers of a thread
  extern __shared__ unsigned char memory[];
  __shared__ alignas(8) u64 barriers[2][8];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rows = sizes.tokens * sizes.group;
  const u32 asked = (in_shared(memory) + 1023) & ~1023u, ring = asked + 2 * ASKED;
  const u32 full = in_shared(barriers[0]), empty = in_shared(barriers[1]);
  const u32 asked_full = full + 8 * SLOTS, asked_empty = empty + 8 * SLOTS;
  if (threadIdx.x == 0) {
    for (int s = 0; s < SLOTS + 2; ++s) set_up(full + 8 * s, 128), set_up(empty + 8 * s, MANY || s >= SLOTS ? 8 : 4);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  if (warp >= 8) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(OF_COPIES));
    Walk walk(lengths, sizes, lines);
    const int first_row = (warp - 8) * 32, piece = lane % 16, other = lane / 16;
    const bool inside_head = piece * 8 < sizes.dim;
    const u32 pitch = sizes.kv * sizes.dim * 2;  // bytes of a token
    u32 swizzled[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      swizzled[i] = piece / 8 * HALF + (first_row + 2 * i + other) * 128 + (piece % 8 ^ (2 * i + other)) * 16;
    int slot = 0, count = 0;
    u32 parity = 1;
    for (; walk.left; walk.advance(lengths, sizes), ++count) {
      const int band = walk.inside % sizes.bands, head = walk.inside / sizes.bands;
      const int* const pages = table + (i64)walk.b * sizes.slots;
      const i64 of_head = (i64)head * sizes.dim + (inside_head ? piece * 8 : 0);
      // The place of this lane's token of a tile among all of the cache, or of the last token.
      const auto place_of = [&](int tile) -> u32 {
        const u32 token = min(tile * TILE + first_row + lane, max(walk.length, 1) - 1), entry = token / (u32)sizes.page;
        u32 number;  // asked for now, not where it is needed
        asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(number) : "l"(pages + entry));
        return number * sizes.page + (token - entry * sizes.page);
      };
      u32 place = place_of(walk.first);
      const u32 to_asked = asked + count % 2 * ASKED;
      if (count >= 2) wait(asked_empty + 8 * (count % 2), (count / 2 - 1) & 1);
#pragma unroll 4
      for (int i = 0; i < ROWS / 8; ++i) {
        const int row = (warp - 8) * 2 + other + 8 * i, at = band * ROWS + row;
        const bool there = at < rows && inside_head;
        copy(to_asked + piece / 8 * (ASKED / 2) + row * 128 + (piece % 8 ^ row % 8) * 16,
             query + (there ? place_in(sizes, walk.b, head, at) + piece * 8 : 0), there);
      }
      arrive_after_copies(asked_full + 8 * (count % 2));
      for (int tile = walk.first; tile < walk.last; ++tile) {
        const u32 next = place_of(min(tile + 1, walk.last - 1));
        u32 from[16];
#pragma unroll
        for (int i = 0; i < 16; ++i) from[i] = __shfl_sync(~0u, place, 2 * i + other);
        const int limit = inside_head ? walk.length - tile * TILE - first_row - other : 0;  // rows that hold a token
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          const T* const cache = (part ? values : keys) + of_head;
          wait(empty + 8 * slot, parity);
          __syncwarp();  // lanes may leave the wait one by one
          const u32 to = ring + slot * SLOT;
#pragma unroll
          for (int i = 0; i < 16; ++i)
            copy_row(to + swizzled[i % 4] + i / 4 * 1024, cache, from[i], pitch, 2 * i < limit);
          arrive_after_copies(full + 8 * slot);
          if (++slot == SLOTS) slot = 0, parity ^= 1;
        }
        place = next;
      }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(OF_PRODUCTS));
    Walk walk(lengths, sizes, lines);
    const int group = __shfl_sync(~0u, warp / 4, 0);
    const int row = (MANY ? warp : warp % 4) * 16 + lane / 4;  // and the eighth on
    const u64 of_group = along(asked + (MANY ? group * 64 * 128 : 0));
    const bool ends_heads = MANY || group == 0;
    // Numbers of the other group's rows and tiles: where its thread of this one's place leaves them.
    float4* const left = exchange + ((i64)blockIdx.x * 17 * 128 + threadIdx.x % 128);
    int count = 0;
    u32 before = 0;  // tiles
    if (MANY && group == 1) give_turn(group);  // the first turn is the first group's
    int2 made = make_int2(0, -1);
    for (; walk.left; walk.advance(lengths, sizes), ++count) {
      const int band = walk.inside % sizes.bands, head = walk.inside / sizes.bands, tiles = walk.last - walk.first;
      const bool idle = band * ROWS + (MANY ? warp : warp % 4) * 16 >= rows;  // its rows are padding
      int seen[2];
#pragma unroll
      for (int h = 0; h < 2; ++h)
        seen[h] = min(walk.length - sizes.tokens + 1 + (band * ROWS + row + 8 * h) / sizes.group, walk.length);
      const int all_see = walk.length - sizes.tokens + 1 + band * ROWS / sizes.group;
      float sums[64], scores[64], top[2] = {NOTHING, NOTHING}, total[2] = {0.0f, 0.0f};
      u32 weights[32];
#pragma unroll
      for (int i = 0; i < 64; ++i) sums[i] = 0.0f;
#pragma unroll
      for (int i = 0; i < 32; ++i) weights[i] = 0;
      const u64 asks = of_group + count % 2 * (ASKED / 16);
      // Slots are numbered through: tile i of this piece has its keys in one and its values in the next.
      const auto arrived = [&](u32 number) {
        wait_for_copies(full + number % SLOTS * 8, number / SLOTS & 1);
        return number % SLOTS;
      };
      const auto give_back = [&](u32 slot) {
        if (lane == 0) arrive(empty + 8 * slot);
      };
      const auto score = [&](u32 slot) {
        const u64 tile = along(ring + slot * SLOT);
        begin_products();
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          const int of_row = k % 4 * 32;
          add_scores<T>(scores, asks + (k / 4 * (ASKED / 2) + of_row) / 16, tile + (k / 4 * HALF + of_row) / 16, k > 0);
        }
        commit();
      };
      const auto value = [&](u32 slot) {
        const u64 tile = across(ring + slot * SLOT);
        begin_products();
#pragma unroll
        for (int k = 0; k < 8; ++k) add_values<T>(sums, weights + 4 * k, tile + k * 2048 / 16);
        commit();
      };
      float old[2];
      // Scores become weights that are not rounded; `old` is by how much sums so far shrink.
      const auto weigh = [&](int i) {
        const int first = (walk.first + i) * TILE, token = first + lane % 4 * 2;
        if (first + TILE > all_see) {
#pragma unroll
          for (int j = 0; j < 64; ++j)
            if (token + j / 4 * 8 + j % 2 >= seen[j / 2 % 2]) scores[j] = NOTHING;
        }
        float most[2][2] = {{top[0], top[1]}, {top[0], top[1]}};
#pragma unroll
        for (int j = 0; j < 64; ++j) most[j % 2][j / 2 % 2] = fmaxf(most[j % 2][j / 2 % 2], scores[j]);
        float safe[2], sum[2][2] = {};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float largest = fmaxf(most[0][h], most[1][h]);
          largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
          largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
          safe[h] = finite(__fmul_rn(largest, scale));
          old[h] = fabsf(top[h]) == -NOTHING && total[h] == 0.0f ? 1.0f : power(__fmul_rn(top[h], scale) - safe[h]);
          top[h] = largest;
        }
#pragma unroll
        for (int j = 0; j < 64; ++j) {
          scores[j] = power(__fmul_rn(scores[j], scale) - safe[j / 2 % 2]);  // fused it would round otherwise
          sum[j % 2][j / 2 % 2] += scores[j];
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) total[h] = fmaf(total[h], old[h], sum[0][h] + sum[1][h]);
      };

      const auto shrink = [&] {
        if (__any_sync(~0u, old[0] != 1.0f || old[1] != 1.0f)) {
#pragma unroll
          for (int j = 0; j < 64; ++j) sums[j] *= old[j / 2 % 2];
        }
#pragma unroll
        for (int j = 0; j < 32; ++j) weights[j] = join<T>(scores[2 * j], scores[2 * j + 1]);
      };

      wait_for_copies(asked_full + 8 * (count % 2), count / 2 & 1);
      if constexpr (MANY) {
        u32 of_keys = arrived(2 * before), of_values;
        wait_for_turn(group);
        score(of_keys);
        give_turn(group);
        wait_but<0>();
        keep(scores);
        give_back(of_keys);
        if (!idle) {
          weigh(0);
          shrink();
        }
        for (int i = 1; i < tiles; ++i) {
          of_values = arrived(2 * (before + i) - 1);
          of_keys = arrived(2 * (before + i));
          wait_for_turn(group);
          score(of_keys);
          value(of_values);
          give_turn(group);
          wait_but<1>();
          keep(scores);
          give_back(of_keys);
          if (!idle) weigh(i);
          wait_but<0>();
          keep(sums);
          give_back(of_values);
          if (!idle) shrink();
        }
        of_values = arrived(2 * (before + tiles) - 1);
        value(of_values);
        wait_but<0>();
        keep(sums);
        give_back(of_values);
      } else {
        for (int i = group; i < tiles; i += STEP) {
          const u32 of_keys = arrived(2 * (before + i));
          score(of_keys);
          wait_but<0>();
          keep(scores);
          give_back(of_keys);
          if (!idle) {
            weigh(i);
            shrink();
          }
          const u32 of_values = arrived(2 * (before + i) + 1);
          value(of_values);
          wait_but<0>();
          keep(sums);
          give_back(of_values);
        }
      }
      before += tiles;
      if (lane == 0) arrive(asked_empty + 8 * (count % 2));

#pragma unroll
      for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(~0u, total[h], 1);
        total[h] += __shfl_xor_sync(~0u, total[h], 2);
      }
      if (!MANY) {  // the second group's tiles join the first one's
        both_groups();  // what the first left here has been read
        if (group == 1 && !idle) {
          left[0] = make_float4(top[0], top[1], total[0], total[1]);
#pragma unroll
          for (int j = 0; j < 16; ++j)
            left[(j + 1) * 128] = make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]);
        }
        both_groups();
        if (group == 0 && !idle) {
          const float4 its = __ldcg(left);
          const float its_top[2] = {its.x, its.y}, its_total[2] = {its.z, its.w};
          float own[2], other[2];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const float most = fmaxf(top[h], its_top[h]), safe = finite(__fmul_rn(most, scale));
            own[h] = power(__fmul_rn(top[h], scale) - safe);
            other[h] = power(__fmul_rn(its_top[h], scale) - safe);
            total[h] = total[h] * own[h] + its_total[h] * other[h];
            top[h] = most;
          }
#pragma unroll
          for (int j = 0; j < 16; ++j) {
            const float4 four = __ldcg(left + (j + 1) * 128);
            sums[4 * j] = sums[4 * j] * own[0] + four.x * other[0];
            sums[4 * j + 1] = sums[4 * j + 1] * own[0] + four.y * other[0];
            sums[4 * j + 2] = sums[4 * j + 2] * own[1] + four.z * other[1];
            sums[4 * j + 3] = sums[4 * j + 3] * own[1] + four.w * other[1];
          }
        }
      }

      const bool whole = walk.is_whole();
      const int place = (blockIdx.x * 2 + (walk.first == 0)) * ROWS;
      if (!whole) {
        if (walk.first == 0) made.y = walk.b * sizes.kv * sizes.bands + walk.inside;
        else made.x = walk.ends() ? 0 : 1;
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int at = band * ROWS + row + 8 * h;
        if (at >= rows || !ends_heads) continue;
        const float factor = total[h] == 0.0f && !whole ? 0.0f : 1.0f / total[h];
        const int column = lane % 4 * 2;
        if (whole) {
          u32* to = reinterpret_cast<u32*>(y + place_in(sizes, walk.b, head, at) + column);
#pragma unroll
          for (int j = 0; j < 16; ++j)
            if (column + 8 * j < sizes.dim) to[4 * j] = join<T>(sums[4 * j + 2 * h] * factor, sums[4 * j + 2 * h + 1] * factor);
        } else {
          float2* to = reinterpret_cast<float2*>(parts + (i64)(place + row + 8 * h) * WIDTH + column);
#pragma unroll
          for (int j = 0; j < 16; ++j)
            to[4 * j] = make_float2(sums[4 * j + 2 * h] * factor, sums[4 * j + 2 * h + 1] * factor);
          if (lane % 4 == 0) logs[place + row + 8 * h] = __fmul_rn(top[h], scale) + log2f(total[h]);
        }
      }
    }
    if (MANY && group == 0) wait_for_turn(group);  // nobody takes the last turn
    if (threadIdx.x == 0) cut[blockIdx.x] = made;
  }
}

// Blocks x: the head whose beginning block x of `attend` has, and not its end. Blocks y: 16 rows of it, a warp each.
template <typename T, int ROWS>
__global__ void __launch_bounds__(128)
join_parts(const float* parts, const float* logs, const int2* cut, T* y, int blocks, int lines, Sizes sizes) {
  const int begin = blockIdx.x, piece = cut[begin].y;
  if (piece < 0) return;
  int end = begin + lines;
  while (end + lines < blocks && cut[end].x) end += lines;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rows = sizes.tokens * sizes.group;
  const int inside = piece % (sizes.kv * sizes.bands), b = piece / (sizes.kv * sizes.bands);
  const int band = inside % sizes.bands, head = inside / sizes.bands;
  for (int row = blockIdx.y * 16 + warp; row < blockIdx.y * 16 + 16; row += 4) {
    const int at = band * ROWS + row;
    if (at >= rows) break;
    const auto place = [&](int block) { return (block * 2 + (block == begin)) * ROWS + row; };
    float top = NOTHING, whole = 0.0f, sum[4] = {};
    for (int i = begin; i <= end; i += lines) top = fmaxf(top, logs[place(i)]);
    top = finite(top);
    for (int i = begin; i <= end; i += lines) {
      const float share = power(logs[place(i)] - top);
      const float4 part = reinterpret_cast<const float4*>(parts + (i64)place(i) * WIDTH)[lane];
      whole += share;
      sum[0] += share * part.x, sum[1] += share * part.y, sum[2] += share * part.z, sum[3] += share * part.w;
    }
    const float factor = 1.0f / whole;
    if (lane * 4 < sizes.dim)
      reinterpret_cast<uint2*>(y + place_in(sizes, b, head, at))[lane] =
          make_uint2(join<T>(sum[0] * factor, sum[1] * factor), join<T>(sum[2] * factor, sum[3] * factor));
  }
}

// Heads of any size: a block for each row, 128 tokens at a time, sums in shared memory.
template <typename T>
__global__ void __launch_bounds__(128)
attend_any(const T* query, const T* keys, const T* values, const int* table, const int* lengths, T* y, float scale,
           Sizes sizes) {
  extern __shared__ float sums[];
  __shared__ float shared[128];
  __shared__ i64 places[128];
  const i64 at = blockIdx.x, of_token = at / (sizes.kv * sizes.group);
  const int head = (int)(at % (sizes.kv * sizes.group)) / sizes.group, b = (int)(of_token / sizes.tokens);
  const int token = (int)(of_token % sizes.tokens), lane = threadIdx.x, dim = sizes.dim;
  const int length = length_of(lengths, b, sizes), seen = min(length - sizes.tokens + 1 + token, length);
  const T* const q = query + at * dim;
  for (int d = lane; d < dim; d += 128) sums[d] = 0.0f;
  float top = NOTHING, total = 0.0f;
  const auto over_block = [&](float x, bool largest) {
    __syncthreads();
    shared[lane] = x;
    __syncthreads();
    for (int d = 64; d; d /= 2) {
      if (lane < d) shared[lane] = largest ? fmaxf(shared[lane], shared[lane + d]) : shared[lane] + shared[lane + d];
      __syncthreads();
    }
    return shared[0];
  };
  for (int first = 0; first < seen; first += 128) {
    __syncthreads();
    const int own = first + lane, count = min(128, seen - first);
    float score = NOTHING;
    if (own < seen) {
      const int entry = own / sizes.page;
      const i64 number = (i64)table[(i64)b * sizes.slots + entry] * sizes.page + own % sizes.page;
      const i64 place = (number * sizes.kv + head) * dim;
      float sum = 0.0f;
      for (int d = 0; d < dim; ++d) sum = fmaf(widen(q[d]), widen(keys[place + d]), sum);
      score = __fmul_rn(sum, scale);
      places[lane] = place;
    }
    const float most = fmaxf(top, over_block(score, true)), safe = finite(most);
    const float old = fabsf(top) == -NOTHING && total == 0.0f ? 1.0f : power(top - safe), weight = power(score - safe);
    top = most;
    total = total * old + over_block(weight, false);
    __syncthreads();
    shared[lane] = weight;
    __syncthreads();
    for (int d = lane; d < dim; d += 128) {
      float sum = sums[d] * old;
      for (int j = 0; j < count; ++j) sum = fmaf(shared[j], widen(values[places[j] + d]), sum);
      sums[d] = sum;
    }
  }
  for (int d = lane; d < dim; d += 128) y[at * dim + d].bits = (u16)join<T>(sums[d] / total, 0.0f);
}
"""

TYPES = {torch.bfloat16: "bf16", torch.float16: "fp16"}
POINTER, INT, FLOAT = ctypes.c_void_p, ctypes.c_int, ctypes.c_float


class Sizes(ctypes.Structure):
    """Sizes as the kernels take them."""

    _fields_ = tuple(
        (name, INT) for name in ("batch", "tokens", "kv", "group", "slots", "page", "dim", "bands")
    )


def checked(answer: tuple) -> object:
    """What the driver returned besides success."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver says {answer[0]}")
    return answer[1] if len(answer) > 1 else None


def shared_bytes(many: bool) -> int:
    """Bytes of a block: queries of two heads, the ring, and what aligns them."""
    return 2 * (128 if many else 64) * 2 * WIDTH + (5 if many else 6) * 128 * 2 * WIDTH + 1024


@functools.cache
def compiled(name: str, shared: int):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if shared > 48 * 1024:
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuKernelSetAttribute(most, shared, kernel.handle, torch.cuda.current_device()))
    return checked(driver.cuKernelGetFunction(kernel.handle))


def launch(name: str, grid: tuple[int, int], threads: int, arguments: tuple, shared: int = 0) -> None:
    """Arguments are pairs of a value and its ctypes type."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = *grid, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared
    config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    checked(driver.cuLaunchKernelEx(config, compiled(name, shared), tuple(zip(*arguments, strict=True)), 0))


@functools.cache
def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def cut_lines(most: int, heads: int) -> tuple[int, int]:
    """Blocks, and lines that they cut: one for each head and band, unless a quarter of the device would be idle."""
    blocks = most // heads * heads
    return (blocks, heads) if blocks >= 0.75 * most else (most, 1)


def run(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor,
    scale: float,
) -> torch.Tensor:  # fmt: skip
    if scale < 0:
        query, scale = -query, -scale  # the largest score is that of the largest product
    # Copies begin at addresses that 16 divides.
    query, keys, values = (each if each.data_ptr() % 16 == 0 else each.clone() for each in (query, keys, values))
    batch, tokens, heads, dim = query.shape
    _, page, kv, _ = keys.shape
    group, kind = heads // kv, TYPES[query.dtype]
    rows = tokens * group
    many = rows > 64
    band = 128 if many else 64
    sizes = Sizes(batch, tokens, kv, group, table.shape[1], page, dim, -(-rows // band))
    y = torch.empty_like(query)
    if not y.numel():
        return y
    inputs = [(each.data_ptr(), POINTER) for each in (query, keys, values, table, lengths, y)]
    factor = (scale * 1.4426950408889634, FLOAT)
    if dim > WIDTH or dim % VECTOR:
        grid = (batch * tokens * heads, 1)
        launch(f"attend_any<{kind}>", grid, 128, (*inputs, factor, (sizes, None)), shared=4 * dim)
        return y
    blocks, lines = cut_lines(multiprocessors(query.device), kv * sizes.bands)
    parts = query.new_empty(2 * blocks * band, WIDTH, dtype=torch.float32)
    logs = query.new_empty(2 * blocks * band, dtype=torch.float32)
    cut = lengths.new_empty(blocks, 2)
    exchange = query.new_empty(0 if many else blocks * 17 * 128 * 4, dtype=torch.float32)
    shared = [(each.data_ptr(), POINTER) for each in (parts, logs, cut)]
    attend = f"attend<{kind}, {'true' if many else 'false'}>"
    settings = ((exchange.data_ptr(), POINTER), factor, (lines, INT), (sizes, None))
    launch(attend, (blocks, 1), THREADS, (*inputs, *shared, *settings), shared_bytes(many))
    grid = (blocks, -(-min(rows, band) // JOINED))
    launch(f"join_parts<{kind}, {band}>", grid, 128, (*shared, inputs[-1], (blocks, INT), (lines, INT), (sizes, None)))
    return y
