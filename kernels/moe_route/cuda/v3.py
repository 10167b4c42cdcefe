"""MoE routing whose second launch begins before the first has ended; a cluster only where it has a token a warp.

Hypothesis: between the two launches of draft 2 lie the end of the slowest block, the start of the next grid and
its first instructions from memory, 1 to 1.5 us. With programmatic serialisation (cuda.core 1.2) the second grid
is set up while the first runs, and waits at its first load. All blocks of the first are on multiprocessors at
once, at most 132, so it may signal at its start. That makes two launches on 128 multiprocessors with 8 tokens
each (0.6 us of choosing) cheaper than one cluster with 64 tokens a block (3 us): clusters up to 512 tokens only.
Predicted in a CUDA graph, cold L2, us: 16 tokens 4.8, 1024 from 7.8 to 7, 8192 from 12.5 to 11.3.
Metric: time_us; PREEXIT and ACQBULK in SASS; launch_count at 1024 from 1 to 2.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
using u16 = unsigned short;
using u32 = unsigned;

constexpr int EXPERTS = 256, TOP = 8, KEPT = 4;
constexpr u32 ALL = 0xffffffff;

struct bf16 {
  u16 bits;
};

// Eight logits as they lie in memory.
template <typename T> struct Eight;
template <> struct alignas(16) Eight<float> {
  float at[8];
  __device__ __forceinline__ float operator[](int k) const { return at[k]; }
};
template <> struct alignas(16) Eight<bf16> {
  u32 at[4];
  __device__ __forceinline__ float operator[](int k) const {
    return __uint_as_float(k % 2 ? at[k / 2] & 0xffff0000 : at[k / 2] << 16);
  }
};

// What the lanes of a warp tell each other while they choose for one token.
struct alignas(16) Exchange {
  float biased[KEPT * 32];  // of the groups that stay
  float score[KEPT * 32];
  int2 slot[TOP];  // lane and key, best first
  int group[KEPT];
};

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Integers in the order of the floats; it is its own inverse.
__device__ __forceinline__ int in_order(int bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }
__device__ __forceinline__ int key(float x) { return in_order(__float_as_int(x)); }

template <typename T, bool SOFTMAX>
__device__ __forceinline__ void scores(const Eight<T>& logits, float (&score)[8]) {
  constexpr float LOG2E = 1.4426950408889634f;
  if constexpr (SOFTMAX) {
    float top = logits[0], sum = 0.0f;
#pragma unroll
    for (int k = 1; k < 8; ++k) top = fmaxf(top, logits[k]);
    top = __int_as_float(in_order(__reduce_max_sync(ALL, key(top)))) * LOG2E;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += score[k] = exp2_approx(fmaf(logits[k], LOG2E, -top));
#pragma unroll
    for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(ALL, sum, o);
    const float share = reciprocal(sum);
#pragma unroll
    for (int k = 0; k < 8; ++k) score[k] *= share;
  } else {
#pragma unroll
    for (int k = 0; k < 8; ++k) score[k] = reciprocal(1.0f + exp2_approx(logits[k] * -LOG2E));
  }
}

__device__ __forceinline__ void join(float& best, float& second, float other, float other_second) {
  second = fmaxf(fminf(best, other), fmaxf(second, other_second));
  best = fmaxf(best, other);
}

// How many earlier places hold the same key of the same lane: only equal scores come here.
__device__ __noinline__ int position_among_equals(int2 mine, u32 equal, int place) {
#pragma unroll 1
  for (int k = 0; k < TOP - 1; ++k) {
    const int lane = __shfl_sync(ALL, mine.x, k, TOP), same = __shfl_sync(ALL, mine.y, k, TOP);
    if (k < place && lane == mine.x && same == mine.y) equal &= equal - 1;
  }
  return __ffs(equal) - 1;
}

// Lane l has experts 8 l to 8 l + 7. Afterwards lane l knows the expert of place l % 8, and its score.
template <typename T, bool SOFTMAX>
__device__ __forceinline__ int choose(const Eight<T>& logits, const float (&bias)[8], Exchange& own,
                                      float& chosen) {
  const int lane = threadIdx.x % 32;
  float score[8], biased[8];
  scores<T, SOFTMAX>(logits, score);
#pragma unroll
  for (int k = 0; k < 8; ++k) biased[k] = score[k] + bias[k];

  // The sum of the two best of 32 experts: 8 here, the others in 3 neighbours.
  float best[4], second[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    best[k] = fmaxf(biased[k], biased[k + 4]);
    second[k] = fminf(biased[k], biased[k + 4]);
  }
  join(best[0], second[0], best[2], second[2]);
  join(best[1], second[1], best[3], second[3]);
  join(best[0], second[0], best[1], second[1]);
#pragma unroll
  for (int o = 1; o < 4; o *= 2) {
    const float other = __shfl_xor_sync(ALL, best[0], o), next = __shfl_xor_sync(ALL, second[0], o);
    join(best[0], second[0], other, next);
  }
  const int sum = key(best[0] + second[0]);

  // Each lane compares its group with two; a group's four lanes together with all.
  const int other = lane ^ (lane % 4 * 8), next = other ^ 4;
  const bool above = __shfl_sync(ALL, sum, other) > sum - (other < lane);
  const bool above_too = __shfl_sync(ALL, sum, next) > sum - (next < lane);
  const u32 group = 15u << (lane & 28);
  const int rank = __popc(__ballot_sync(ALL, above) & group) + __popc(__ballot_sync(ALL, above_too) & group);
  const u32 kept = __ballot_sync(ALL, rank < KEPT);
  if (rank < KEPT) {
    const int first = __popc(kept & ((1u << (lane & 28)) - 1)) * 8 + lane % 4 * 8;
    float4* to = reinterpret_cast<float4*>(&own.biased[first]);
    to[0] = make_float4(biased[0], biased[1], biased[2], biased[3]);
    to[1] = make_float4(biased[4], biased[5], biased[6], biased[7]);
    to = reinterpret_cast<float4*>(&own.score[first]);
    to[0] = make_float4(score[0], score[1], score[2], score[3]);
    to[1] = make_float4(score[4], score[5], score[6], score[7]);
    if (lane % 4 == 0) own.group[first / 32] = lane / 4;
  }
  __syncwarp();

  // Now lane l has 4 of the 128 that stay, best first, and the best of all is taken eight times.
  const float4 four = *reinterpret_cast<const float4*>(&own.biased[lane * 4]);
  int a = key(four.x), b = key(four.y), c = key(four.z), d = key(four.w);
  auto order = [](int& more, int& less) {
    const int top = max(more, less);
    less = min(more, less);
    more = top;
  };
  order(a, b), order(c, d), order(a, c), order(b, d), order(b, c);
  const u32 below = (1u << lane) - 1;
#pragma unroll
  for (int k = 0; k < TOP; ++k) {
    const int top = __reduce_max_sync(ALL, a);
    const bool mine = a == top;
    if (!(__ballot_sync(ALL, mine) & below) && mine) {
      own.slot[k] = make_int2(lane, top);
      a = b, b = c, c = d, d = 0x80000000;
    }
  }
  __syncwarp();

  const int place = lane % TOP;
  const int2 mine = own.slot[place];
  const int4 its = *reinterpret_cast<const int4*>(&own.biased[mine.x * 4]);
  const int bits = in_order(mine.y);
  int index = its.x == bits ? 0 : its.y == bits ? 1 : its.z == bits ? 2 : 3;
  const int before = __shfl_up_sync(ALL, mine.y, 1, TOP);
  if (__any_sync(ALL, place && before == mine.y)) {
    const u32 equal = (its.x == bits) | (its.y == bits) << 1 | (its.z == bits) << 2 | (its.w == bits) << 3;
    index = position_among_equals(mine, equal, place);
  }
  chosen = own.score[mine.x * 4 + index];
  const int expert = own.group[mine.x >> 3] * 32 + (mine.x & 7) * 4 + index;
  __syncwarp();  // all have read what the next token overwrites
  return expert;
}

__device__ __forceinline__ float sum_of_places(float x) {
#pragma unroll
  for (int o = TOP / 2; o; o /= 2) x += __shfl_xor_sync(ALL, x, o);
  return x;
}

// Two tokens a warp at most: `first` + warp, and as many warps further. Lane l has expert and weight of place
// l % 8, and `taken` who took which expert: a bit a token, set in whatever order.
template <typename T, bool SOFTMAX>
__device__ __forceinline__ void choose_tile(const T* logits, const float (&bias)[8], Exchange* exchange,
                                            u32 (*taken)[EXPERTS], int first, int some, float scale,
                                            int (&expert)[2], float (&weight)[2]) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const T* from = logits + (long long)(first + warp) * EXPERTS + lane * 8;
  Eight<T> now, later;
  if (warp < some) now = *reinterpret_cast<const Eight<T>*>(from);
  if (warp + warps < some) later = *reinterpret_cast<const Eight<T>*>(from + (long long)warps * EXPERTS);
#pragma unroll 1
  for (int token = warp; token < some; token += warps) {
    float score;
    const int found = choose<T, SOFTMAX>(now, bias, exchange[warp], score);
    const float share = score * reciprocal(sum_of_places(score)) * scale;
    if (lane < TOP) atomicOr(&taken[token / 32][found], 1u << token % 32);
    if (token == warp) expert[0] = found, weight[0] = share;
    expert[1] = found, weight[1] = share;
    now = later;
  }
}

// Tokens of the tile before this one that took the expert.
__device__ __forceinline__ u32 rank_in_tile(const u32 (*taken)[EXPERTS], int expert, int token) {
  const u32 below = (1u << token % 32) - 1;
  if (token < 32) return __popc(taken[0][expert] & below);
  return __popc(taken[0][expert]) + __popc(taken[1][expert] & below);
}

__device__ __forceinline__ void read_bias(const float* from, float (&bias)[8]) {
  const float4* at = reinterpret_cast<const float4*>(from + threadIdx.x % 32 * 8);
  const float4 a = at[0], b = at[1];
  bias[0] = a.x, bias[1] = a.y, bias[2] = a.z, bias[3] = a.w;
  bias[4] = b.x, bias[5] = b.y, bias[6] = b.z, bias[7] = b.w;
}

// Of each expert: where this block's first route goes, where its padding begins, and the first unit behind it.
struct Layout {
  int at[EXPERTS], limit[EXPERTS], end[EXPERTS];
  int sums[EXPERTS / 32];
};

// Thread e < 256 brings expert e's routes, in all blocks and in those before this one. A unit: a block of routes.
__device__ __forceinline__ void lay_out(Layout& layout, int total, int before, int unit) {
  const int expert = threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int units = 0, upto = 0;
  if (expert < EXPERTS) {
    upto = units = (u32)(total + unit - 1) / (u32)unit;
#pragma unroll
    for (int o = 1; o < 32; o *= 2) {
      const int left = __shfl_up_sync(ALL, upto, o);
      if (lane >= o) upto += left;
    }
    if (lane == 31) layout.sums[warp] = upto;
  }
  __syncthreads();
  if (expert < EXPERTS) {
#pragma unroll
    for (int w = 0; w < EXPERTS / 32 - 1; ++w) upto += w < warp ? layout.sums[w] : 0;
    const int start = (upto - units) * unit;
    layout.at[expert] = start + before;
    layout.limit[expert] = start + total;
    layout.end[expert] = upto;
  }
  __syncthreads();
}

// Padding and owners: 1 << `shift` threads an expert, experts dealt to `parts` blocks; equal shares of the rest.
__device__ __forceinline__ void pad(const Layout& layout, int* sorted, int* owners, int part, int parts, int shift,
                                    int unit, int nothing, int length, int units) {
  const int threads = blockDim.x, lanes = 1 << shift, lane = threadIdx.x & (lanes - 1);
#pragma unroll 1
  for (int e = part + parts * (threadIdx.x >> shift); e < EXPERTS; e += parts * (threads >> shift)) {
    const int end = layout.end[e];
#pragma unroll 1
    for (int p = layout.limit[e] + lane; p < end * unit; p += lanes) sorted[p] = nothing;
#pragma unroll 1
    for (int u = (e ? layout.end[e - 1] : 0) + lane; u < end; u += lanes) owners[u] = e;
  }
  const int used = layout.end[EXPERTS - 1], mine = part * threads + threadIdx.x, step = parts * threads;
#pragma unroll 1
  for (int p = used * unit + mine; p < length; p += step) sorted[p] = nothing;
#pragma unroll 1
  for (int u = used + mine; u < units; u += step) owners[u] = -1;
}

__device__ __forceinline__ void let_next_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
__device__ __forceinline__ void wait_for_former() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// First launch: choose, and rank the routes of each expert inside the block, tile after tile.
template <typename T, bool SOFTMAX>
__global__ void __launch_bounds__(1024)
route(const T* logits, const float* biases, float* weights, int* ids, u32* routes, u16* counts, int tokens,
      int tile, int tiles, float scale) {
  __shared__ Exchange exchange[32];
  __shared__ u32 taken[2][EXPERTS], running[EXPERTS];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  float bias[8];
  let_next_begin();
  read_bias(biases, bias);
#pragma unroll 1
  for (int e = threadIdx.x; e < EXPERTS; e += blockDim.x) taken[0][e] = taken[1][e] = running[e] = 0;
  int first = blockIdx.x * tile * tiles;
  for (int n = 0; n < tiles; ++n, first += tile) {
    const int some = min(tile, tokens - first);
    int expert[2];
    float weight[2];
    __syncthreads();  // the masks are empty
    choose_tile<T, SOFTMAX>(logits, bias, exchange, taken, first, some, scale, expert, weight);
    __syncthreads();  // and now complete
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int token = warp + k * warps;
      if (lane < TOP && token < some) {
        const int at = (first + token) * TOP + lane;
        weights[at] = weight[k];
        ids[at] = expert[k];
        routes[at] = expert[k] << 16 | running[expert[k]] + rank_in_tile(taken, expert[k], token);
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int e = threadIdx.x; e < EXPERTS; e += blockDim.x) {
      running[e] += __popc(taken[0][e]) + __popc(taken[1][e]);
      taken[0][e] = taken[1][e] = 0;
    }
  }
#pragma unroll 1
  for (int e = threadIdx.x; e < EXPERTS; e += blockDim.x) counts[blockIdx.x * EXPERTS + e] = running[e];
}

// Second launch, 1024 threads: every block adds up all blocks' counts, and places the routes of one. A thread's
// sums of two experts share a word: 9 rows of at most 3,840 tokens stay below 2^16.
extern "C" __global__ void __launch_bounds__(1024, 1)
place(const u32* routes, const u16* counts, int* totals, int* sorted, int* owners, int* padded, int tokens,
      int each, int blocks, int shift, int unit, int length, int units) {
  constexpr int PARTS = 16, QUADS = EXPERTS / 4, ROWS = 9;
  __shared__ uint2 sums[2][PARTS][QUADS];
  __shared__ Layout layout;
  const int part = threadIdx.x / QUADS, quad = threadIdx.x % QUADS, block = blockIdx.x;
  const int end = min(tokens, (block + 1) * each) * TOP;
  int route = block * each * TOP + threadIdx.x;
  wait_for_former();
  u32 found = route < end ? __ldcg(routes + route) : 0;
  const uint2* row = reinterpret_cast<const uint2*>(counts) + threadIdx.x;
  asm("" : "+l"(row));  // one address for all loads, instead of one each under its condition
  uint2 four[ROWS], total = {}, before = {};
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    four[k] = make_uint2(0, 0);
    if (part + k * PARTS < blocks) four[k] = __ldcg(row + k * PARTS * QUADS);
  }
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    total.x += four[k].x, total.y += four[k].y;
    if (part + k * PARTS < block) before.x += four[k].x, before.y += four[k].y;
  }
  sums[0][part][quad] = total;
  sums[1][part][quad] = before;
  __syncthreads();
  int all = 0, earlier = 0;
  if (threadIdx.x < EXPERTS) {
    const u16* own = reinterpret_cast<const u16*>(sums) + threadIdx.x;
#pragma unroll
    for (int k = 0; k < PARTS; ++k) all += own[k * EXPERTS], earlier += own[(PARTS + k) * EXPERTS];
    if (block == 0) totals[threadIdx.x] = all;
  }
  lay_out(layout, all, earlier, unit);
  if (block == 0 && threadIdx.x == 0) *padded = layout.end[EXPERTS - 1] * unit;
#pragma unroll 1
  while (route < end) {
    sorted[layout.at[found >> 16] + (found & 0xffff)] = route;
    route += 1024;
    if (route < end) found = __ldcg(routes + route);
  }
  pad(layout, sorted, owners, block, gridDim.x, shift, unit, tokens * TOP, length, units);
}

__device__ __forceinline__ u32 rank_in_cluster() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// A word of another block's shared memory: that at the place which `own` has in this block's.
__device__ __forceinline__ u32 read_remote(const u32* own, u32 rank) {
  u32 found;
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %1, %2;\nld.shared::cluster.u32 %0, [there];\n}"
      : "=r"(found)
      : "r"((u32)__cvta_generic_to_shared(own)), "r"(rank)
      : "memory");
  return found;
}

// Few tokens: one launch of one cluster, `tile` tokens a block, 256 threads or more.
template <typename T, bool SOFTMAX>
__global__ void __launch_bounds__(1024)
route_in_cluster(const T* logits, const float* biases, float* weights, int* ids, int* totals, int* sorted,
                 int* owners, int* padded, int tokens, int tile, int shift, int unit, int length, int units,
                 float scale) {
  __shared__ Exchange exchange[32];
  __shared__ u32 taken[2][EXPERTS], count[EXPERTS];
  __shared__ Layout layout;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const int block = rank_in_cluster(), blocks = gridDim.x;
  float bias[8];
  read_bias(biases, bias);
  if (threadIdx.x < EXPERTS) taken[0][threadIdx.x] = taken[1][threadIdx.x] = 0;
  const int first = block * tile, some = min(tile, tokens - first);
  int expert[2];
  float weight[2];
  __syncthreads();  // the masks are empty
  choose_tile<T, SOFTMAX>(logits, bias, exchange, taken, first, some, scale, expert, weight);
  __syncthreads();  // and now complete
  int total = 0, before = 0;
  if (threadIdx.x < EXPERTS) total = __popc(taken[0][threadIdx.x]) + __popc(taken[1][threadIdx.x]);
  if (blocks > 1) {
    if (threadIdx.x < EXPERTS) count[threadIdx.x] = total;
    cluster_arrive();  // before any store to memory: it waits for those
    cluster_wait();
    if (threadIdx.x < EXPERTS) {
      total = 0;
#pragma unroll
      for (int b = 0; b < 16; ++b) {
        const int there = b < blocks ? read_remote(&count[threadIdx.x], b) : 0;
        total += there;
        before += b < block ? there : 0;
      }
    }
  }
  if (block == 0 && threadIdx.x < EXPERTS) totals[threadIdx.x] = total;
  lay_out(layout, total, before, unit);
  if (blocks > 1) cluster_arrive_relaxed();  // the others' counts are read
  if (block == 0 && threadIdx.x == 0) *padded = layout.end[EXPERTS - 1] * unit;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const int token = warp + k * warps;
    if (lane < TOP && token < some) {
      const int at = (first + token) * TOP + lane;
      weights[at] = weight[k];
      ids[at] = expert[k];
      sorted[layout.at[expert[k]] + rank_in_tile(taken, expert[k], token)] = at;
    }
  }
  pad(layout, sorted, owners, block, blocks, shift, unit, tokens * TOP, length, units);
  if (blocks > 1) cluster_wait();  // and nobody reads this block's any more
}
"""
TYPES = {torch.float32: "float", torch.bfloat16: "bf16"}
EXPERTS, TOP = 256, 8
PLACING = 1024
"""Threads of a block of the second launch."""
MOST_BLOCKS = 132
"""Of the first launch: the second one reads the counts of 144 at most."""


@functools.cache
def compiled(name: str):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if name.startswith("route_in_cluster"):
        beyond_8 = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        status, *_ = driver.cuKernelSetAttribute(beyond_8, 1, kernel.handle, 0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{name}: {status}")
    return kernel


@functools.cache
def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def configuration(blocks: int, threads: int, cluster: bool = False, early: bool = False) -> LaunchConfig:
    if cluster:  # then the grid counts clusters
        return LaunchConfig(grid=(1,), cluster=(blocks,), block=(threads,))
    return LaunchConfig(grid=(blocks,), block=(threads,), programmatic_stream_serialization=early)


def padding_shift(threads: int, blocks: int) -> int:
    """Logarithm of the threads that pad for one expert, 32 at most."""
    return min(5, (threads // -(-EXPERTS // blocks)).bit_length() - 1)


def spread(tokens: int, blocks: int) -> tuple[int, int, int]:
    """Tokens of a tile, tiles of a block, and blocks, of which there are `blocks` at most."""
    each = max(1, -(-tokens // blocks))
    if each > 3800:
        raise ValueError(f"{tokens} tokens: a block counts 3,800 at most")
    tiles = -(-each // 64)
    tile = -(-each // (tiles * 8)) * 8
    return tile, tiles, max(1, -(-tokens // (tile * tiles)))


def warps_for(tile: int) -> int:
    """A token or two a warp."""
    return tile if tile <= 32 else tile // 2


def buffers(logits, block_size, scratch):
    """One allocation: the outputs; where they and the scratch begin; routes of a block, all places, all blocks."""
    tokens = logits.shape[0]
    routes = tokens * TOP
    length = routes + EXPERTS * (block_size - 1)
    sizes = (routes, routes, scratch, EXPERTS, length, -(-length // block_size), 1)
    whole = torch.empty(sum(sizes), dtype=torch.int32, device=logits.device)
    weights, ids, _, counts, sorted_ids, owners, padded = whole.split(sizes)
    weights, ids = weights.view(torch.float32).view(tokens, TOP), ids.view(tokens, TOP)
    at = [whole.data_ptr()]
    for size in sizes[:-1]:
        at.append(at[-1] + 4 * size)
    layout = numpy.int32(block_size), numpy.int32(length), numpy.int32(sizes[-2])
    return (weights, ids, counts, sorted_ids, owners, padded), at, layout


MOST_IN_A_CLUSTER = 512
"""Tokens that one cluster takes."""


def clustered(tokens: int) -> tuple[int, int]:
    """Tokens of a block, and the blocks of the one cluster; up to 32 tokens one block has all."""
    if tokens <= 32:
        return max(1, tokens), 1
    tile = 16 if tokens <= 256 else 32
    return tile, 1 << (-(-tokens // tile) - 1).bit_length()


def run_cluster(stream, kind, logits, bias, scale, block_size):
    tile, blocks = clustered(logits.shape[0])
    threads = 32 * max(16, warps_for(tile))
    found, at, layout = buffers(logits, block_size, 0)
    weights, ids, _, totals, sorted_ids, owners, padded = at
    launch(
        stream, configuration(blocks, threads, cluster=blocks > 1), compiled(f"route_in_cluster<{kind}>"),
        logits.data_ptr(), bias.data_ptr(), weights, ids, totals, sorted_ids, owners, padded,
        numpy.int32(logits.shape[0]), numpy.int32(tile), numpy.int32(padding_shift(threads, blocks)),
        *layout, numpy.float32(scale),
    )  # fmt: skip
    return found


def run(logits, bias, scale, softmax, block_size):
    tokens = logits.shape[0]
    if logits.data_ptr() % 16 or bias.data_ptr() % 16:
        logits, bias = logits.clone(), bias.clone()
    kind = f"{TYPES[logits.dtype]}, {'true' if softmax else 'false'}"
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    if tokens <= MOST_IN_A_CLUSTER:
        return run_cluster(stream, kind, logits, bias, scale, block_size)
    many = min(MOST_BLOCKS, multiprocessors(logits.device))
    tile, tiles, blocks = spread(tokens, many)
    routes = tokens * TOP  # one word each of scratch, behind them the blocks' counts
    found, at, layout = buffers(logits, block_size, routes + blocks * EXPERTS // 2)
    weights, ids, ranked, totals, sorted_ids, owners, padded = at
    counts = ranked + 4 * routes
    launch(
        stream, configuration(blocks, 32 * max(8, warps_for(tile))), compiled(f"route<{kind}>"),
        logits.data_ptr(), bias.data_ptr(), weights, ids, ranked, counts, numpy.int32(tokens), numpy.int32(tile),
        numpy.int32(tiles), numpy.float32(scale),
    )  # fmt: skip
    parts = max(blocks, min(many, -(-int(layout[1]) // 1024)))
    launch(
        stream, configuration(parts, PLACING, early=True), compiled("place"), ranked, counts, totals, sorted_ids,
        owners, padded, numpy.int32(tokens), numpy.int32(tile * tiles), numpy.int32(blocks),
        numpy.int32(padding_shift(PLACING, parts)), *layout,
    )  # fmt: skip
    return found
