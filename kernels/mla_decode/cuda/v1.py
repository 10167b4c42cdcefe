"""Two groups of warps share the rows and a tile: half of a score's terms each, then half of the latents each.

Hypothesis: the Triton draft multiplies scores twice, because both of its groups of four warps need all of them. Here
a group adds up half of the 576 terms of all 64 x 64 scores, whose operands shared memory delivers as fast as they
are multiplied; the groups exchange halves, and each takes 32 tokens through the exponential. Both then multiply all
weights by their own 256 latents, from the tile that is there already. A tile of 64 tokens takes 1152 + 1024 cycles on
tensor cores and some 600 for the exchange, while TMA fills the other of two tiles. The next scores follow the values
without a wait. Blocks of 64 rows of one sequence are pairs: each reads half of a tile for both, so L2 sees half of
the traffic, which is 5.5 TB/s else.
Predicted: 43 us at 32x1x16, 112 at 32x16x16, 68 at 32x1x128, 900 at 32x16x128 (floors 35, 92, 46 and 739 at 4.3 TB/s
and 790 TFLOP/s). Metric: tensor_pct to 75 % at 32x16x128.
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

BLOCKS = 132
"""Blocks in all to aim for: one a multiprocessor, whose shared memory it fills."""
LEAST = 128
"""Tokens of the longest possible sequence below which a part is not split further."""
PAIRS = 0
"""1: two blocks read a tile for both, where a sequence has an even number of them."""
EARLY = 0
"""1: the blocks that join parts may begin before those that compute them have ended, and wait there."""

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

#define NOTHING __uint_as_float(0xff800000u)
constexpr int CHUNK = 8192, CHUNKS = 9, TILE = CHUNK * CHUNKS;  // 64 rows of 64 columns; nine make a tile
constexpr int LATENT = 512;

template <typename T> __device__ __forceinline__ u32 join(float low, float high);
template <> __device__ __forceinline__ u32 join<bf16>(float low, float high) {
  u32 word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
template <> __device__ __forceinline__ u32 join<fp16>(float low, float high) {
  u32 word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
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
// At the barrier of another block that has this one's place in its shared memory.
__device__ __forceinline__ void arrive_at(u32 barrier, u32 rank) {
  asm volatile(
      "{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [at];\n}" ::"r"(barrier), "r"(rank) : "memory");
}
__device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}"
      ::"r"(barrier), "r"(parity) : "memory");
}
// 64 columns from `column` and as many rows from `row` as the map says.
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
// Of the two groups of warps that multiply.
__device__ __forceinline__ void both_groups() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// Rows of 128 bytes, swizzled, the eighth row 1024 bytes on: the terms of a sum lie along a row.
__device__ __forceinline__ u64 along(u32 at) {
  return (u64)((at & 0x3ffff) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}
// The same rows where each is a term of the sum, and 64 columns on begins the next chunk.
__device__ __forceinline__ u64 across(u32 at) {
  return (u64)((at & 0x3ffff) >> 4) | (u64)(CHUNK >> 4) << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

#define SUMS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SUMS_128_REST \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63" \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95" \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define FOUR(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define SCORES(TYPE)                                                                                     \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"                                          \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE                               \
               " {" SUMS_32 "}, %32, %33, add, 1, 1, 0, 0;\n}"                                           \
               : SIXTEEN(0), SIXTEEN(16) : "l"(a), "l"(b), "r"(add))
#define VALUES(TYPE)                                                                                     \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n"                                            \
               "wgmma.mma_async.sync.aligned.m64n256k16.f32." TYPE "." TYPE                              \
               " {" SUMS_32 SUMS_128_REST "}, %128, %129, add, 1, 1, 0, 1;\n}"                           \
               : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80),            \
                 SIXTEEN(96), SIXTEEN(112) : "l"(a), "l"(b))

// 64 rows by 64 tokens, 16 terms.
template <typename T> __device__ __forceinline__ void add_scores(float (&c)[32], u64 a, u64 b, int add) {
  if constexpr (T::BRAIN) SCORES("bf16");
  else SCORES("f16");
}
// 64 rows by 256 latents, 16 tokens.
template <typename T> __device__ __forceinline__ void add_values(float (&c)[128], u64 a, u64 b) {
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

// Block x: 64 rows of sequence z, tokens times heads; block y: a part of its cache. Warps 0 to 3 and 4 to 7 multiply,
// warp 8 fills the two tiles, whose group gives its registers to the others. With several parts, y is float32 and its lse of two.
template <typename T, bool PAIR>
__global__ void __launch_bounds__(384, 1)
decode(const __grid_constant__ TensorMap queries, const __grid_constant__ TensorMap latents, const int* lengths,
       void* y, float* lse, float scale, int tokens, int heads, int context) {
  extern __shared__ unsigned char memory[];
  __shared__ alignas(8) u64 barriers[5];
  __shared__ float of_groups[2][64];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int split = blockIdx.y, splits = gridDim.y, sequence = blockIdx.z, rows = tokens * heads;
  const int first_row = blockIdx.x * 64, rank = PAIR ? blockIdx.x % 2 : 0;
  const u32 query = (in_shared(memory) + 1023) & ~1023u, tiles = query + TILE, weights = tiles + 2 * TILE;
  const u32 full = in_shared(barriers), empty = full + 16, asked = full + 32;
  const int length = min(lengths[sequence], context);
  const int share = (length + splits - 1) / splits, part = (share + 63) / 64 * 64;
  const int first = min(split * part, length), last = min(first + part, length), count = (last - first + 63) / 64;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) set_up(full + 8 * s, 1), set_up(empty + 8 * s, 256 + (PAIR ? 8 : 0));
    set_up(asked, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if constexpr (PAIR) cluster_barrier();
  else __syncthreads();

  if (warp >= 8) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp == 8 && lane == 0) {
      expect(asked, TILE);
      for (int c = 0; c < CHUNKS; ++c)
        copy(query + c * CHUNK, queries, c * 64, sequence * rows + first_row, asked);
      for (int i = 0; i < count; ++i) {
        const int slot = i % 2;
        if (i >= 2) wait(empty + 8 * slot, (i / 2 - 1) & 1);
        expect(full + 8 * slot, TILE);
        const int row = sequence * context + first + i * 64 + rank * 32;
        const u32 to = tiles + slot * TILE + rank * (CHUNK / 2), barrier = full + 8 * slot;
        for (int c = 0; c < CHUNKS; ++c) {
          if constexpr (PAIR) copy_to_both(to + c * CHUNK, latents, c * 64, row, barrier);
          else copy(to + c * CHUNK, latents, c * 64, row, barrier);
        }
      }
    }
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int group = __shfl_sync(~0u, warp / 4, 0), thread = threadIdx.x % 128;
    const int row = warp % 4 * 16 + lane / 4;  // and the eighth row on
    int seen[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) seen[h] = min(length - tokens + 1 + (first_row + row + 8 * h) / heads, last);
    const int all_see = min(length - tokens + 1 + first_row / heads, last);
    float sums[128], scores[32], top[2] = {NOTHING, NOTHING}, total[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < 128; ++i) sums[i] = 0.0f;
    const u64 asks = along(query + group * 64), keys = along(tiles + group * 64);
    const u64 values = across(tiles + group * 4 * CHUNK), given = along(weights);
    const auto score = [&](int i) {
      const u64 tile = keys + i % 2 * (TILE / 16);
#pragma unroll
      for (int k = 0; k < 18; ++k) {  // two of the four steps of 16 terms of each chunk
        const int at = (k / 2 * CHUNK + k % 2 * 32) / 16;
        add_scores<T>(scores, asks + at, tile + at, k > 0);
      }
    };
    wait(asked, 0);
    if (count) {
      wait(full, 0);
      begin_products();
      score(0);
      commit();
      wait_but<0>();
    }
    for (int i = 0; i < count; ++i) {
      const u32 rope = tiles + i % 2 * TILE + 8 * CHUNK;
      keep(scores);
      both_groups();  // nobody reads the weights or this tile's last chunk any more

      // The other group's half goes where it is not in the way: into the weights' place, and into the last chunk.
      const u32 sent = (group ? rope : weights) + thread * 16, taken = (group ? weights : rope) + thread * 16;
      float own[16];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float away[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          own[4 * j + k] = group ? scores[16 + 4 * j + k] : scores[4 * j + k];
          away[k] = group ? scores[4 * j + k] : scores[16 + 4 * j + k];
        }
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                     ::"r"(sent + j * 2048), "f"(away[0]), "f"(away[1]), "f"(away[2]), "f"(away[3]) : "memory");
      }
      both_groups();
      float most[2] = {top[0], top[1]};
      const int token = first + i * 64 + group * 32 + lane % 4 * 2;
      const bool some_hidden = first + i * 64 + 64 > all_see;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float more[4];
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(more[0]), "=f"(more[1]), "=f"(more[2]), "=f"(more[3]) : "r"(taken + j * 2048) : "memory");
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          float& one = own[4 * j + k];
          one = __fmul_rn(one + more[k], scale);
          if (some_hidden && token + 8 * j + k % 2 >= seen[k / 2]) one = NOTHING;
          most[k / 2] = fmaxf(most[k / 2], one);
        }
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        most[h] = fmaxf(most[h], __shfl_xor_sync(~0u, most[h], 1));
        most[h] = fmaxf(most[h], __shfl_xor_sync(~0u, most[h], 2));
        if (lane % 4 == 0) of_groups[group][row + 8 * h] = most[h];
      }
      both_groups();
      float old[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        most[h] = fmaxf(most[h], of_groups[group ^ 1][row + 8 * h]);
        const float safe = finite(most[h]);
        old[h] = fabsf(top[h]) == -NOTHING ? 1.0f : power(top[h] - safe);  // a thread's own sum may be zero there
        top[h] = most[h];
        total[h] *= old[h];
        // Weights lie in rows of 64 tokens, swizzled as TMA does.
        const int to = row + 8 * h;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float a = power(own[4 * j + 2 * h] - safe), b = power(own[4 * j + 2 * h + 1] - safe);
          total[h] += a + b;
          const u32 at = weights + to * 128 + ((group * 4 + j) ^ (to & 7)) * 16 + lane % 4 * 4;
          asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(join<T>(a, b)) : "memory");
        }
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      both_groups();
      if (__any_sync(~0u, old[0] != 1.0f || old[1] != 1.0f)) {
#pragma unroll
        for (int j = 0; j < 128; ++j) sums[j] *= old[j / 2 % 2];
      }
      begin_products();
#pragma unroll
      for (int k = 0; k < 4; ++k)
        add_values<T>(sums, given + k * 2, values + i % 2 * (TILE / 16) + k * 128);
      commit();
      if (i + 1 < count) {
        wait(full + 8 * ((i + 1) % 2), (i + 1) / 2 & 1);
        score(i + 1);
      }
      commit();
      wait_but<1>();  // the values: the tile's place is free, while the next scores are under way
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // what lay in its last chunk is read
      arrive(empty + 8 * (i % 2));
      if (PAIR) {
        __syncwarp();
        if (lane == 0) arrive_at(empty + 8 * (i % 2), rank ^ 1);
      }
      wait_but<0>();
    }
    keep(sums);

#pragma unroll
    for (int h = 0; h < 2; ++h) {
      total[h] += __shfl_xor_sync(~0u, total[h], 1);
      total[h] += __shfl_xor_sync(~0u, total[h], 2);
    }
    both_groups();
    if (lane % 4 == 0) of_groups[group][row] = total[0], of_groups[group][row + 8] = total[1];
    both_groups();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int at = first_row + row + 8 * h;
      if (at >= rows) continue;
      const float whole = of_groups[0][row + 8 * h] + of_groups[1][row + 8 * h];
      const float factor = whole > 0.0f || splits == 1 ? 1.0f / whole : 0.0f;
      const long long place = ((long long)sequence * rows + at) * splits + split;
      const int column = group * 256 + lane % 4 * 2;
      if (group == 0 && lane % 4 == 0)
        lse[place] = (top[h] + log2f(whole)) * (splits == 1 ? 0.6931471805599453f : 1.0f);
      if (splits == 1) {
        u32* to = reinterpret_cast<u32*>(static_cast<u16*>(y) + place * LATENT + column);
#pragma unroll
        for (int j = 0; j < 32; ++j) to[j * 4] = join<T>(sums[4 * j + 2 * h] * factor, sums[4 * j + 2 * h + 1] * factor);
      } else {
        float2* to = reinterpret_cast<float2*>(static_cast<float*>(y) + place * LATENT + column);
#pragma unroll
        for (int j = 0; j < 32; ++j)
          to[j * 4] = make_float2(sums[4 * j + 2 * h] * factor, sums[4 * j + 2 * h + 1] * factor);
      }
    }
  }
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  if constexpr (PAIR) cluster_barrier();  // nobody leaves while the other reads for it or arrives at its barriers
}

// A block for a row: the parts of it, weighted by their lse.
template <typename T>
__global__ void __launch_bounds__(128)
add_parts(const float* parts, const float* logs, u32* y, float* lse, int splits) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const long long row = blockIdx.x, first = row * splits;
  float top = NOTHING, whole = 0.0f;
  for (int s = 0; s < splits; ++s) top = fmaxf(top, logs[first + s]);
  top = finite(top);
  for (int s = 0; s < splits; ++s) whole += power(logs[first + s] - top);
  float sum[4] = {};
  for (int s = 0; s < splits; ++s) {
    const float share = power(logs[first + s] - top) / whole;
    const float4 one = reinterpret_cast<const float4*>(parts + (first + s) * LATENT)[threadIdx.x];
    sum[0] += share * one.x, sum[1] += share * one.y, sum[2] += share * one.z, sum[3] += share * one.w;
  }
  reinterpret_cast<uint2*>(y + row * (LATENT / 2))[threadIdx.x] =
      make_uint2(join<T>(sum[0], sum[1]), join<T>(sum[2], sum[3]));
  if (threadIdx.x == 0) lse[row] = (top + log2f(whole)) * 0.6931471805599453f;
}
"""

TYPES = {torch.bfloat16: "bf16", torch.float16: "fp16"}
FORMATS = {
    torch.bfloat16: driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    torch.float16: driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
}
WIDTH, LATENT = 576, 512
SHARED = 3 * 9 * 8192 + 8192 + 1024
"""Bytes: the queries, two tiles, the weights, and what aligns them."""


def checked(answer: tuple) -> object:
    """What the driver returned besides success."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver says {answer[0]}")
    return answer[1] if len(answer) > 1 else None


@functools.cache
def compiled(name: str):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if name.startswith("decode"):
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuKernelSetAttribute(most, SHARED, kernel.handle, torch.cuda.current_device()))
    return checked(driver.cuKernelGetFunction(kernel.handle))


def launch(name: str, grid: tuple[int, int, int], threads: int, arguments: tuple, shared=0, pair=False, early=False):
    """Arguments are pairs of a value and its ctypes type."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared
    config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    attributes = []
    if early:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        one.value.programmaticStreamSerializationAllowed = 1
        attributes.append(one)
    if pair:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        one.value.clusterDim.x, one.value.clusterDim.y, one.value.clusterDim.z = 2, 1, 1
        attributes.append(one)
    config.attrs, config.numAttrs = attributes, len(attributes)
    checked(driver.cuLaunchKernelEx(config, compiled(name), tuple(zip(*arguments, strict=True)), 0))


@functools.lru_cache(1024)
def tensor_map(address: int, rows: int, dtype: torch.dtype, box: int):
    """How TMA finds `box` rows of 64 columns; a function of its arguments, whatever lies at the address."""
    return checked(
        driver.cuTensorMapEncodeTiled(
            FORMATS[dtype],
            2,
            address,
            [driver.cuuint64_t(WIDTH), driver.cuuint64_t(rows)],
            [driver.cuuint64_t(2 * WIDTH)],
            [driver.cuuint32_t(64), driver.cuuint32_t(box)],
            [driver.cuuint32_t(1), driver.cuuint32_t(1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )


def shares(batch: int, rows: int, context: int) -> tuple[int, int]:
    """Blocks of 64 rows of a sequence, and parts of its cache: as many as one wave has room for."""
    blocks = -(-rows // 64)
    splits = max(1, min(BLOCKS // (batch * blocks), context // LEAST, 64))
    return blocks, splits


POINTER, INT, FLOAT = ctypes.c_void_p, ctypes.c_int, ctypes.c_float


def run(
    query: torch.Tensor, cache: torch.Tensor, lengths: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    batch, tokens, heads, _ = query.shape
    context, rows, kind = cache.shape[1], tokens * heads, TYPES[query.dtype]
    y = query.new_empty(batch, tokens, heads, LATENT)
    lse = query.new_empty(batch, tokens, heads, dtype=torch.float32)
    blocks, splits = shares(batch, rows, context)
    pair = bool(PAIRS) and blocks % 2 == 0
    parts, logs = y, lse
    if splits > 1:
        parts = query.new_empty(batch * rows * splits, LATENT, dtype=torch.float32)
        logs = query.new_empty(batch * rows * splits, dtype=torch.float32)
    launch(
        f"decode<{kind}, {'true' if pair else 'false'}>",
        (blocks, splits, batch),
        384,
        (
            (tensor_map(query.data_ptr(), batch * rows, query.dtype, 64), None),
            (tensor_map(cache.data_ptr(), batch * context, cache.dtype, 32 if pair else 64), None),
            *((one.data_ptr(), POINTER) for one in (lengths, parts, logs)),
            (scale * 1.4426950408889634, FLOAT),
            *((number, INT) for number in (tokens, heads, context)),
        ),
        shared=SHARED,
        pair=pair,
    )
    if splits > 1:
        pointers = [(one.data_ptr(), POINTER) for one in (parts, logs, y, lse)]
        launch(f"add_parts<{kind}>", (batch * rows, 1, 1), 128, (*pointers, (splits, INT)), early=bool(EARLY))
    return y, lse
