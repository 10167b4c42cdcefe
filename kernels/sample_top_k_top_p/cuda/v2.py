"""Sampling: the blocks of a cluster send each other messages; no barrier of the cluster on the usual way.

Hypothesis: both barriers of the cluster release at the scope of the device: their SASS is MEMBAR.ALL.GPU, ERRBAR,
CCTL.IVALL around the barrier, some 500 to 800 cycles each while 100 KiB of bulk copies are under way. st.async
(STAS) carries the data and its own completion to an mbarrier of the receiver, without a fence: eight lanes of a
warp send the maxima of its groups in 16 bytes each (128 messages a block), then every block its count (C
messages), and candidates go to the first block, whose mbarrier learns from each block how many bytes to expect.
What blocks have to wait for is what they read. The rare rows (large k, a nucleus of the whole row) keep barriers.
Predicted: 0.5 to 0.8 us less of each selecting: 1x131072 from 8.5 to 7.8 us, 32x152064 from 11 to 10.3 us,
128x131072 from 26 to 24.5 us; nucleus unchanged.
Metric: no MEMBAR before the last EXIT of the usual way; smsp__average_warps_issue_stalled_membar falls to zero.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
using u32 = unsigned;
using u64 = unsigned long long;

constexpr int THREADS = 512, WARPS = THREADS / 32;
constexpr int PIECE = 4096;          // elements that one bulk copy brings
constexpr int MOST_PIECES = 8;
constexpr int BINS = 256;            // of the groups' maxima, over at most SPAN below the row's
constexpr float SPAN = 64.0f;
constexpr int FEW = 160;             // of 512 groups: some 192 elements reach the 160th largest maximum
constexpr int MOST = 256;            // elements that are ranked pairwise
constexpr int LISTED = 768;
constexpr int DIGITS = 1024;
constexpr int NEVER = -2147483647 - 1, EVER = 2147483647;

struct alignas(16) Shared {
  union {
    struct {
      u64 listed[LISTED];            // of the first block: column and value, an equal part for every block
      float maxima[THREADS];         // of the whole row's groups
      u32 bins[BINS];
    };
    u32 histogram[2][DIGITS];
  };
  u64 sums[16];                      // a block
  u64 warp_sums[WARPS];
  u64 landed[MOST_PIECES];           // barriers of the bulk copies
  u64 told, counted, filled;         // and of the messages: maxima, counts; in the first block, what is listed
  u32 counts[16];                    // a block
  int top, bottom;                   // keys of the largest and of the smallest finite maximum
  float u, p, least;                 // of the row; least: the logarithm of min_p
  u32 k;
  u32 found, edge, mass, kept, digit;
  int token;
  u64 before;
};

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

// Integers in the order of the floats; both zeros are one.
__device__ __forceinline__ int as_key(float x) {
  const int bits = __float_as_int(x + 0.0f);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
__device__ __forceinline__ float as_float(int key) { return __int_as_float(key ^ ((key >> 31) & 0x7fffffff)); }

__device__ __forceinline__ float largest(const float4& four) {
  return fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w));
}

__device__ __forceinline__ u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }

__device__ __forceinline__ void barrier_init(u64* barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
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

__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// Where nothing has been written yet that another block reads.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The address of the same variable in another block of the cluster.
__device__ __forceinline__ u32 mapped(const void* at, u32 block) {
  u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(at)), "r"(block));
  return there;
}

// Messages: a store in another block, and its bytes told to a barrier there.
__device__ __forceinline__ void send(float4* at, u32 block, const float4& value, u64* barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                   mapped(at, block)),
               "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(mapped(barrier, block))
               : "memory");
}

__device__ __forceinline__ void send(u32* at, u32 block, u32 value, u64* barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                   mapped(at, block)),
               "r"(value), "r"(mapped(barrier, block))
               : "memory");
}

__device__ __forceinline__ void send(u64* at, u32 block, u64 value, u64* barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0], %1, [%2];" ::"r"(
                   mapped(at, block)),
               "l"(value), "r"(mapped(barrier, block))
               : "memory");
}

// A block alone is no cluster, where messages are illegal instructions: it stores and synchronises.
template <int C, typename T> __device__ __forceinline__ void tell(T* at, u32 block, const T& value, u64* barrier) {
  if constexpr (C > 1) {
    send(at, block, value, barrier);
  } else {
    *at = value;
  }
}

template <int C> __device__ __forceinline__ void received(u64* barrier) {
  if constexpr (C > 1) {
    wait(barrier, 0);
  } else {
    __syncthreads();
  }
}

// Arrive in another block; nothing but the messages is to be seen there.
__device__ __forceinline__ void expect_at(u64* barrier, u32 block, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(
                   mapped(barrier, block)),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void store_at(u64* at, u32 block, u64 value) {
  asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(mapped(at, block)), "l"(value) : "memory");
}

__device__ __forceinline__ u64 load_pair_at(const u32* at, u32 block) {
  u64 value;
  asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(value) : "r"(mapped(at, block)) : "memory");
  return value;
}

template <int C> __device__ __forceinline__ void whole_cluster() {
  if constexpr (C == 1) {
    __syncthreads();
  } else {
    __syncwarp();
    cluster_arrive();
    cluster_wait();
  }
}

// exp(x) for x <= 0 in units of 2^-34, as two numbers of 17 bits: 32767 of them add up in 32 bits.
struct Mass {
  u32 high, low;
  __device__ __forceinline__ explicit Mass(float x) {
    const float scaled = fminf(__expf(x), 0.99999994f) * 131072.0f;
    high = (u32)scaled;
    low = __float2uint_rn((scaled - (float)high) * 131072.0f);
  }
};

__device__ __forceinline__ u64 joined(u64 high, u64 low) { return (high << 17) + low; }

// How far below the row's maximum, in steps of a float.
__device__ __forceinline__ u32 distance(float x, int top) { return (u32)top - (u32)as_key(x); }

__device__ __forceinline__ u64 over_warp(u64 v) {
#pragma unroll
  for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

__device__ __forceinline__ u64 up_to_lane(u64 v) {
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    const u64 other = __shfl_up_sync(~0u, v, o);
    if ((int)(threadIdx.x % 32) >= o) v += other;
  }
  return v;
}

// The smallest distance d such that the elements up to it, and not beyond `last`, are `target`, or have the share
// p of the mass of all up to `last`. At first those below 2^-17 of the largest are one digit, the last, which none
// has: they are most of a broad row, and cost no atomics.
template <int C, bool MASS>
__device__ u32 descend(Shared& s, const float4* part, int packs, u32 last, u64 target) {
  const int t = threadIdx.x, warp = t / 32, top_key = s.top;
  const float top = as_float(top_key);
  u32 found = 0, span = ~0u;
  u64 before = 0;
  bool all = false;
#pragma unroll 1
  for (int level = 0; level < 4; ++level) {
    const int shift = level == 3 ? 0 : 22 - 10 * level;
    u32 rest = 0;
    for (int i = t; i < DIGITS; i += THREADS) s.histogram[0][i] = s.histogram[1][i] = 0;
    __syncthreads();
#pragma unroll 1
    for (int j = t; j < packs; j += THREADS) {
      const float4 four = part[j];
      const float each[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u32 d = distance(each[i], top_key), off = d - found;
        if (d > last || off > span) continue;
        if constexpr (MASS) {
          const Mass m(each[i] - top);
          if (m.high == 0 && level == 0 && !all) {
            rest += m.low;
            continue;
          }
          if (m.high) atomicAdd(&s.histogram[0][off >> shift], m.high);
          if (m.low) atomicAdd(&s.histogram[1][off >> shift], m.low);
        } else {
          atomicAdd(&s.histogram[0][off >> shift], 1u);
        }
      }
    }
    if (MASS && level == 0) {
      rest = __reduce_add_sync(~0u, rest);
      if (t % 32 == 0) atomicAdd(&s.histogram[1][DIGITS - 1], rest);
    }
    whole_cluster<C>();
    u64 first = 0, second = 0;  // digits 2t and 2t + 1
    const int in_use = 2 * t <= span >> shift ? C : 0;
#pragma unroll 2
    for (int b = 0; b < in_use; ++b) {
      const u64 pair = load_pair_at(&s.histogram[0][2 * t], b);
      if constexpr (MASS) {
        const u64 lows = load_pair_at(&s.histogram[1][2 * t], b);
        first += joined((u32)pair, (u32)lows);
        second += joined(pair >> 32, lows >> 32);
      } else {
        first += (u32)pair;
        second += pair >> 32;
      }
    }
    const u64 mine = first + second;
    u64 until = up_to_lane(mine);
    if (t % 32 == 31) s.warp_sums[warp] = until;
    __syncthreads();
    u64 total = 0;
#pragma unroll 1
    for (int w = 0; w < WARPS; ++w) {
      if (w == warp) until += total;
      total += s.warp_sums[w];
    }
    if (MASS && level == 0) {
      const double reach = (double)s.p * (double)total;
      target = (u64)reach;
      target += (double)target < reach;
      target += target == 0;
    }
    const u64 goal = target - before, without = until - mine;
    if (without < goal && goal <= until) {
      const bool later = without + first < goal;
      s.digit = 2 * t + later;
      s.before = without + (later ? first : 0);
    }
    whole_cluster<C>();  // and no block reads the histogram of another any more
    if (MASS && level == 0 && !all && s.digit == DIGITS - 1) {
      all = true, level = -1;
      continue;
    }
    found += s.digit << shift;
    before += s.before;
    span = (1u << shift) - 1;
  }
  return found;
}

// The token where any number of elements may be kept: those up to `last`, with min_p's share.
template <int C>
__device__ void draw(Shared& s, const float4* part, int packs, u32 last, int base, int* token) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = blockIdx.x % C;
  const int top_key = s.top;
  const float top = as_float(top_key);
  const int each_warp = (packs + WARPS - 1) / WARPS;
  const int start = warp * each_warp, end = min(start + each_warp, packs);
  auto mass = [&](float x) -> u64 {
    if (distance(x, top_key) > last || !(x - top >= s.least)) return 0;
    const Mass m(x - top);
    return joined(m.high, m.low);
  };
  auto four_masses = [&](const float4& four) { return mass(four.x) + mass(four.y) + mass(four.z) + mass(four.w); };
  u64 own = 0;
#pragma unroll 1
  for (int j = start + lane; j < end; j += 32) own += four_masses(part[j]);
  own = over_warp(own);
  if (lane == 0) s.warp_sums[warp] = own;
  __syncthreads();
  u64 block = 0, before = 0;
#pragma unroll 1
  for (int w = 0; w < WARPS; ++w) {
    if (w == warp) before = block;
    block += s.warp_sums[w];
  }
  if ((int)threadIdx.x < C) store_at(&s.sums[rank], threadIdx.x, block);
  whole_cluster<C>();
  u64 total = 0;
#pragma unroll 1
  for (int b = 0; b < C; ++b) {
    if (b == rank) before += total;
    total += s.sums[b];
  }
  const u64 target = (u64)((double)s.u * (double)total);
  if (target < before || target >= before + own) return;  // one warp of the cluster goes on
#pragma unroll 1
  for (int first = start; first < end; first += 32) {
    const int j = first + lane;
    float4 four;
    if (j < end) four = part[j];
    const u64 mine = j < end ? four_masses(four) : 0;
    const u64 until = before + up_to_lane(mine);
    if (target >= until - mine && target < until) {
      u64 sum = until - mine;
      int column = base + 4 * j;
      if ((sum += mass(four.x)) <= target) {
        ++column;
        if ((sum += mass(four.y)) <= target) {
          ++column;
          if ((sum += mass(four.z)) <= target) ++column;
        }
      }
      *token = column;
    }
    before = __shfl_sync(~0u, until, 31);
    if (before > target) return;
  }
}

// The token from n elements that hold all that top-k keeps, in any order.
template <int C> __device__ void rank_listed(Shared& s, float* room, int n, int* token) {
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  float* x = room;
  u32* weight = (u32*)(room + MOST);
  int* column = (int*)(room + 2 * MOST);
  u32* above = (u32*)(room + 3 * MOST);
  const float top = as_float(s.top);
  const u32 k = s.k;
  if (t < n) {
    int b = 0, place = t;
#pragma unroll 1
    while (place >= (int)s.counts[b]) place -= s.counts[b++];
    const u64 listed = s.listed[b * (LISTED / C) + place];
    x[t] = __int_as_float((int)(u32)listed);
    weight[t] = __float2uint_rn(fminf(expf(x[t] - top), 0.99999994f) * 16777216.0f);
    column[t] = (int)(listed >> 32);
  }
  __syncthreads();
#pragma unroll 1
  for (int i = warp; i < n; i += WARPS) {
    const float own = x[i];
    u32 larger = 0, mass = 0;
#pragma unroll 2
    for (int j = lane; j < n; j += 32)
      if (x[j] > own) larger += 1, mass += weight[j];
    larger = __reduce_add_sync(~0u, larger);
    mass = __reduce_add_sync(~0u, mass);
    if (lane == 0) {
      above[i] = larger < k ? mass : ~0u;
      if (larger < k) atomicAdd(&s.mass, weight[i]);
    }
  }
  __syncthreads();
  if (t < (n + 31) / 32 * 32) {
    u32 kept = 0;
    if (t < n) {
      const bool in_p = s.p >= 1.0f || (double)above[t] < (double)s.p * (double)s.mass;
      if (above[t] != ~0u && in_p && x[t] - top >= s.least) kept = weight[t];
      weight[t] = kept;
    }
    kept = __reduce_add_sync(~0u, kept);
    if (lane == 0) atomicAdd(&s.kept, kept);
  }
  __syncthreads();
  const u32 target = (u32)((double)s.u * (double)s.kept);
#pragma unroll 1
  for (int i = warp; i < n; i += WARPS) {
    if (weight[i] == 0) continue;
    const int own = column[i];
    u32 until = 0;
#pragma unroll 2
    for (int j = lane; j < n; j += 32)
      if (column[j] <= own) until += weight[j];
    until = __reduce_add_sync(~0u, until);
    if (lane == 0 && until > target) atomicMin(&s.token, own);
  }
  __syncthreads();
  if (t == 0) *token = s.token;
}

// A cluster of C blocks a row; block r has the elements r * chunk to (r + 1) * chunk, counted from the last
// 16-byte boundary before the row.
template <int C>
__global__ void __launch_bounds__(THREADS, 3)
sample(const float* __restrict__ logits, const float* __restrict__ u, const int* __restrict__ k,
       const float* __restrict__ p, const float* __restrict__ min_p, int* token, int cols, int chunk) {
  extern __shared__ __align__(128) float part[];
  __shared__ Shared s;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, rank = blockIdx.x % C, index = blockIdx.x / C;
  const float* from = logits + (long long)index * cols;
  const int base = rank * chunk - (int)((u64)from / 4 % 4);      // the column of part[0]
  const int begin = max(0, -base), end = max(begin, min(chunk, cols - base));
  const int inner = (begin + 3) / 4 * 4, outer = max(inner, end / 4 * 4);
  const int packs = chunk / 4, pieces = (chunk + PIECE - 1) / PIECE;
  if (t == 0) {
#pragma unroll 1
    for (int i = 0; i < pieces; ++i) barrier_init(&s.landed[i], 1);
    barrier_init(&s.told, 1), barrier_init(&s.counted, 1), barrier_init(&s.filled, C);
    barrier_init_fence();
#pragma unroll 1
    for (int i = 0; i < pieces; ++i) {
      const int low = max(inner, i * PIECE), high = min(outer, (i + 1) * PIECE);
      const u32 bytes = max(0, high - low) * 4;
      expect(&s.landed[i], bytes);
      if (bytes) bulk_copy(part + low, from + base + low, bytes, &s.landed[i]);
    }
    expect(&s.told, THREADS * sizeof(float));
    expect(&s.counted, C * sizeof(u32));
    s.top = NEVER, s.bottom = EVER, s.token = EVER;
    s.found = s.mass = s.kept = 0;
  }
  if constexpr (C > 1) {
    __syncwarp();
    cluster_arrive_relaxed();  // the barriers of this block are there
  }
  // What bulk copies leave: up to three elements at either end of the row, and what lies beyond.
  auto fill = [&](int i) { part[i] = i >= begin && i < end ? from[base + i] : minus_infinity(); };
  if (t < inner) fill(t);
#pragma unroll 1
  for (int i = outer + t; i < chunk; i += THREADS) fill(i);
  if (t < BINS) s.bins[t] = 0;
  float own_u, own_p, own_least;
  u32 own_k;
  if (t == 32) own_u = u[index], own_p = p[index], own_least = min_p[index], own_k = k[index];
  __syncthreads();

  const float4* own_part = reinterpret_cast<const float4*>(part);
  float own = minus_infinity();
#pragma unroll 1
  for (int i = 0; i < pieces; ++i) {
    wait(&s.landed[i], 0);
#pragma unroll
    for (int h = 0; h < PIECE / 4 / THREADS; ++h) {
      const int j = i * (PIECE / 4) + h * THREADS + t;
      if (j < packs) own = fmaxf(own, largest(own_part[j]));
    }
  }
  // C lanes are a group: every block has 512 maxima of the row. Eight lanes send four of them each.
  float group = own;
#pragma unroll
  for (int o = 1; o < C; o *= 2) group = fmaxf(group, __shfl_xor_sync(~0u, group, o));
  const int four = lane % 8 / C * 4;
  float4 maxima;
  maxima.x = __shfl_sync(~0u, group, four * C);
  maxima.y = __shfl_sync(~0u, group, four * C + C);
  maxima.z = __shfl_sync(~0u, group, four * C + 2 * C);
  maxima.w = __shfl_sync(~0u, group, four * C + 3 * C);
  if constexpr (C > 1) cluster_wait();
  float4* place = reinterpret_cast<float4*>(&s.maxima[rank * (THREADS / C) + warp * (32 / C) + four]);
  if (lane < 8) tell<C>(place, lane % C, maxima, &s.told);
  if (t == 32) s.u = own_u, s.p = own_p, s.least = logf(own_least), s.k = own_k;
  received<C>(&s.told);
  const float maximum = s.maxima[t];
  const int key = as_key(maximum);
  const int highest = __reduce_max_sync(~0u, key);
  const int lowest = __reduce_min_sync(~0u, maximum == minus_infinity() ? EVER : key);
  if (lane == 0) {
    atomicMax(&s.top, highest);
    atomicMin(&s.bottom, lowest);
  }
  __syncthreads();

  const u32 wanted = s.k;
  if (wanted <= FEW) {
    const float top = as_float(s.top), range = fminf(top - as_float(s.bottom), SPAN);
    const float scale = fminf(__fdividef(BINS - 1, range), 1e30f);
    atomicAdd(&s.bins[(int)fminf((top - maximum) * scale, BINS - 1)], 1u);
    __syncthreads();
    if (warp == 0) {
      u32 mine[BINS / 32], sum = 0;
#pragma unroll
      for (int i = 0; i < BINS / 32; ++i) sum += mine[i] = s.bins[lane * (BINS / 32) + i];
      u32 until = sum;
#pragma unroll
      for (int o = 1; o < 32; o *= 2) {
        const u32 other = __shfl_up_sync(~0u, until, o);
        if (lane >= o) until += other;
      }
      u32 count = until - sum;
      if (count < wanted && until >= wanted) {
        u32 edge = lane * (BINS / 32);
#pragma unroll
        for (int i = 0; i < BINS / 32; ++i) edge += count < wanted, count += mine[i];
        s.edge = edge;
      }
    }
    __syncthreads();
    if (s.edge < BINS) {  // the same in all blocks
      const float limit = s.edge;
      constexpr int ROOM = LISTED / C;
      if ((top - own) * scale < limit) {
#pragma unroll 2
        for (int j = t; j < packs; j += THREADS) {
          const float4 four = own_part[j];
          if (!((top - largest(four)) * scale < limit)) continue;
#pragma unroll 1
          for (int i = 4 * j; i < 4 * j + 4; ++i) {
            const float x = part[i];
            if (!((top - x) * scale < limit)) continue;
            const u32 place = atomicAdd(&s.found, 1u);
            const u64 told = ((u64)(u32)(base + i) << 32) | (u32)__float_as_int(x);
            if (place < ROOM) tell<C>(&s.listed[rank * ROOM + place], 0, told, &s.filled);
          }
        }
      }
      __syncthreads();
      if (t < C) tell<C>(&s.counts[rank], t, s.found, &s.counted);
      if constexpr (C > 1) {
        if (t == 0) expect_at(&s.filled, 0, min(s.found, (u32)ROOM) * sizeof(u64));
      }
      received<C>(&s.counted);
      if (C > 1 && rank == 0) wait(&s.filled, 0);
      u32 n = 0;
      bool fits = true;
#pragma unroll
      for (int b = 0; b < C; ++b) n += s.counts[b], fits &= s.counts[b] <= ROOM;
      if (fits && n <= MOST) {
        if (rank == 0) rank_listed<C>(s, part, n, token + index);
        return;
      }
    }
  }
  __syncthreads();
  u32 last = ~0u;
  if ((int)wanted < cols) last = descend<C, false>(s, own_part, packs, last, wanted);
  if (s.p < 1.0f) last = descend<C, true>(s, own_part, packs, last, 0);
  draw<C>(s, own_part, packs, last, base, token + index);
}
"""
CHUNK = 16384
"""Elements a block: three blocks fit a multiprocessor."""
LARGEST_CHUNK = 32764
MOST_BLOCKS = 8
ROOM = 4096
"""Bytes that ranking needs."""


@functools.cache
def compiled(blocks: int):
    name = f"sample<{blocks}>"
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    of = driver.CUfunction_attribute
    limits = {
        of.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: 4 * (LARGEST_CHUNK + 4),
        of.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: 100,
    }
    for attribute, value in limits.items():
        status, *_ = driver.cuKernelSetAttribute(attribute, value, kernel.handle, 0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{name}: {attribute}: {status}")
    return kernel


def parts(cols: int, aligned: bool) -> tuple[int, int]:
    """Blocks a row, and elements a block."""
    span = cols if aligned else cols + 3
    blocks = 1
    while blocks < MOST_BLOCKS and span > blocks * CHUNK:
        blocks *= 2
    chunk = -(-span // (4 * blocks)) * 4
    if chunk > LARGEST_CHUNK:
        raise ValueError(f"{cols} columns: at most {MOST_BLOCKS * LARGEST_CHUNK - 3} lie in a cluster")
    return blocks, chunk


@functools.cache
def planned(rows: int, cols: int, aligned: bool):
    """The kernel, how it is launched, and its last arguments."""
    blocks, chunk = parts(cols, aligned)
    shared = max(4 * chunk, ROOM)
    cluster = {"cluster": (blocks,)} if blocks > 1 else {}
    config = LaunchConfig(grid=(rows,), block=(512,), shmem_size=shared, **cluster)
    sizes = (cols, chunk)
    return compiled(blocks), config, tuple(numpy.int32(size) for size in sizes)


def run(logits, u, k, p, min_p):
    rows, cols = logits.shape
    token = torch.empty(rows, dtype=torch.int32, device=logits.device)
    if rows == 0:
        return token
    kernel, config, sizes = planned(rows, cols, cols % 4 == 0 and logits.data_ptr() % 16 == 0)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    given = (tensor.data_ptr() for tensor in (logits, u, k, p, min_p, token))
    launch(stream, config, kernel, *given, *sizes)
    return token
