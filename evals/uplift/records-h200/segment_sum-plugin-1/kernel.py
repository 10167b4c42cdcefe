"""segment_sum: y[s] = sum of values[offsets[s]:offsets[s + 1]], row by row; an empty segment gives 0

One launch. Each block owns an equal tile of rows, whatever the segments are. It searches the offsets for the segments that
end in the tile (the loads of the values are under way meanwhile), marks the last row of each in shared memory, and its workers
walk their rows from mark to mark. Sums that cross workers are joined by shuffles and shared memory, sums that cross blocks
through a workspace: the block that arrives last adds the parts in a fixed order, so results repeat bit for bit. Empty segments
are zeroed by equal shares of all segments.
"""

import functools
import itertools

import numpy
import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

BANKS, COUNTERS = 32, 8192  # as in the source
SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef long long ll;
constexpr int BANKS = 32, COUNTERS = 8192;
constexpr int UNROLL = 4;  // loads under way in a worker

// Arrivals at sums that cross blocks. Zero between kernels: the last to arrive resets its counter. Calls take the banks in
// turn, so that calls on several streams do not meet.
__device__ unsigned arrivals[BANKS * COUNTERS];

template <typename T> struct Wide { typedef float type; };
template <> struct Wide<double> { typedef double type; };
template <typename T> struct IsBf16 { static constexpr bool value = false; };
template <> struct IsBf16<__nv_bfloat16> { static constexpr bool value = true; };
template <typename T, int N> struct alignas(N * sizeof(T)) Pack { T at[N]; };

template <int BYTES> struct Bits { };
template <> struct Bits<1> { typedef unsigned char type; };
template <> struct Bits<2> { typedef unsigned short type; };
template <> struct Bits<4> { typedef unsigned type; };
template <> struct Bits<8> { typedef uint2 type; };
template <> struct Bits<16> { typedef uint4 type; };

template <bool STREAM, typename B> __device__ __forceinline__ B fetch(const void* p) {
  B w;
  if constexpr (sizeof(B) == 16) {
    if constexpr (STREAM)
      asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w) : "l"(p));
    else
      asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w) : "l"(p));
  } else {
    w = __ldg(reinterpret_cast<const B*>(p));
  }
  return w;
}

// acc += the V elements of w
template <typename T, int V, typename A, typename B> __device__ __forceinline__ void add(A (&acc)[V], B w) {
  if constexpr (sizeof(B) == 16 && V == 8 && IsBf16<T>::value) {
    unsigned at[4] = {w.x, w.y, w.z, w.w};
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      acc[2 * i] += __uint_as_float(at[i] << 16);
      acc[2 * i + 1] += __uint_as_float(at[i] & 0xffff0000u);
    }
  } else {
    Pack<T, V> v = *reinterpret_cast<Pack<T, V>*>(&w);
    #pragma unroll
    for (int i = 0; i < V; ++i) acc[i] += A(v.at[i]);
  }
}

template <typename T, int V, typename A> __device__ __forceinline__ void put(T* y, const A (&acc)[V]) {
  Pack<T, V> out;
  #pragma unroll
  for (int i = 0; i < V; ++i) out.at[i] = T(acc[i]);
  *reinterpret_cast<Pack<T, V>*>(y) = out;
}

// The K bits of a worker from the block's bits.
template <int K> __device__ __forceinline__ unsigned ends_of(const unsigned* bits, int row) {
  unsigned word = bits[row >> 5] >> (row & 31);
  return K >= 32 ? word : word & ((1u << (K & 31)) - 1);
}

// 16-byte units of shared memory, permuted so that lanes with a stride of a power of two miss each other's banks.
__device__ __forceinline__ int swizzle(int u) { return u ^ ((u >> 3) & 7); }

// Rows r0 .. r0 + n - 1 lie in segments lo .. hi: a search with 512 probes a round.
template <int NT>
__device__ __forceinline__ void locate(const ll* __restrict__ off, ll segs, ll r0, int n, ll& lo, ll& hi) {
  constexpr int P = NT < 512 ? 512 / NT : 1, N = NT * P, WARPS = NT / 32;
  __shared__ unsigned counts[2][WARPS];
  const int tid = threadIdx.x;
  const ll last = r0 + n - 1;
  ll la = 0, lb = segs, ha = 0, hb = segs;
  for (int round = 0; la < lb || ha < hb; ++round) {
    ll ls = (lb - la + N - 1) / N, hs = (hb - ha + N - 1) / N;
    ll lv[P], hv[P];
    #pragma unroll
    for (int j = 0; j < P; ++j) {
      ll q = la + (tid * P + j + 1) * ls - 1;
      lv[j] = q < lb ? __ldg(off + q + 1) : last + 1;
    }
    #pragma unroll
    for (int j = 0; j < P; ++j) {
      ll q = ha + (tid * P + j + 1) * hs - 1;
      hv[j] = !round ? lv[j] : q < hb ? __ldg(off + q + 1) : last + 1;
    }
    unsigned c = 0;
    #pragma unroll
    for (int j = 0; j < P; ++j) c += (la < lb && lv[j] <= r0) + ((ha < hb && hv[j] <= last) << 16);
    c = __reduce_add_sync(~0u, c);
    if (tid % 32 == 0) counts[round & 1][tid / 32] = c;
    __syncthreads();
    c = 0;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) c += counts[round & 1][w];
    if (la < lb) { la += (c & 0xffff) * ls; lb = min(lb, la + ls - 1); }
    if (ha < hb) { ha += (c >> 16) * hs; hb = min(hb, ha + hs - 1); }
  }
  lo = la;
  hi = ha;
}

// Calls at(row of the tile, segment) for the last row of every segment that ends in the tile.
template <int NT, typename F>
__device__ __forceinline__ void each_end(const ll* __restrict__ off, ll r0, int n, ll lo, ll hi, F at) {
  const int tid = threadIdx.x;
  const ll r1 = r0 + n;
  if (hi - lo <= 8 * (ll)n + 8 * NT) {
    for (ll s = lo + tid; s <= hi; s += NT) {
      ll from = __ldg(off + s), to = __ldg(off + s + 1);
      if (from < to && to <= r1) at((int)(to - 1 - r0), s);
    }
  } else {  // mostly empty segments: look up each row instead
    for (int r = tid; r < n; r += NT) {
      ll a = lo, b = hi;
      while (a < b) {
        ll m = (a + b) >> 1;
        if (__ldg(off + m + 1) <= r0 + r) a = m + 1; else b = m;
      }
      if (__ldg(off + a + 1) == r0 + r + 1) at(r, a);
    }
  }
}

// At the last row of a segment: its bit is set, and mark[row] = segment - lo.
template <int NT>
__device__ __forceinline__ void find(const ll* __restrict__ off, ll segs, ll r0, int n, int* mark, unsigned* bits, ll& lo, ll& hi) {
  locate<NT>(off, segs, r0, n, lo, hi);
  const ll first = lo;
  each_end<NT>(off, r0, n, lo, hi, [&](int r, ll s) {
    mark[r] = (int)(s - first);
    atomicOr(bits + (r >> 5), 1u << (r & 31));
  });
}

// Zeroes this block's share of the empty segments, L lanes a row. The first answers are asked for early, by peek.
template <int NT> struct Share {
  ll begin, end;
  bool empty;
  __device__ __forceinline__ bool peek(const ll* __restrict__ off, ll base) const {
    ll s = base + (threadIdx.x & 31) * (NT / 32) + threadIdx.x / 32;
    return s < end && __ldg(off + s) == __ldg(off + s + 1);
  }
  __device__ __forceinline__ Share(const ll* __restrict__ off, ll segs) {
    const ll share = (segs + gridDim.x - 1) / gridDim.x;
    begin = min(segs, blockIdx.x * share);
    end = min(segs, begin + share);
    empty = peek(off, begin);
  }
  template <int L, typename F> __device__ __forceinline__ void clear(const ll* __restrict__ off, F put_zero) {
    const int lane = threadIdx.x & 31;
    for (ll base = begin; base < end;) {
      unsigned mask = __ballot_sync(~0u, empty);
      if (L < 32) mask = mask >> (lane & ~(L - 1)) & ((1u << (L & 31)) - 1);
      const int shift = L < 32 ? lane & ~(L - 1) : 0;
      while (mask) {
        int bit = __ffs(mask) - 1;
        mask &= mask - 1;
        put_zero(base + (shift + bit) * (NT / 32) + threadIdx.x / 32);
      }
      __syncwarp();
      base += NT;
      if (base < end) empty = peek(off, base);
    }
  }
};

// Joins the workers of a warp, L lanes each: head is the sum up to the worker's first end, acc the sum after its last one.
// Afterwards head has all that the warp has of that segment; open says that the segment began before the warp; acc of the last
// worker is what the warp carries on.
template <int L, int V, typename A> __device__ __forceinline__ void join(A (&head)[V], A (&acc)[V], bool ends, bool& open) {
  const int lane = threadIdx.x & 31;
  int f = ends;
  #pragma unroll
  for (int d = L; d < 32; d <<= 1) {
    int g = __shfl_up_sync(~0u, f, d);
    bool add = lane >= d && !f;
    #pragma unroll
    for (int i = 0; i < V; ++i) {
      A b = __shfl_up_sync(~0u, acc[i], d);
      if (add) acc[i] += b;
    }
    if (lane >= d) f |= g;
  }
  open = true;
  if constexpr (L < 32) {
    int g = __shfl_up_sync(~0u, f, L);
    #pragma unroll
    for (int i = 0; i < V; ++i) {
      A b = __shfl_up_sync(~0u, acc[i], L);
      if (lane >= L) head[i] += b;
    }
    open = lane < L || !g;
  }
}

// Joins the G parts of a block, then the blocks. hd, cy: G x CT sums; flag: segment - lo of a part's first end, or -1.
template <int NT, typename T, typename A, typename F, typename H>
__device__ __forceinline__ void finish(const ll* __restrict__ off, T* __restrict__ y, A* __restrict__ ws, unsigned* counter,
    const A* hd, const A* cy, const int* flag, A* red, int G, int CT, int TR, ll r0, int n, ll lo, ll hi, int cols, int col0,
    F emit, H after) {
  constexpr int VA = 16 / sizeof(A);
  typedef Pack<A, VA> P;
  __shared__ int final[2];
  const int tid = threadIdx.x, tile = blockIdx.x;
  const ll r1 = r0 + n;
  const ll o0 = __ldg(off + lo), o1 = __ldg(off + lo + 1), p0 = __ldg(off + hi), p1 = __ldg(off + hi + 1);
  const bool head = o0 < r0 && o1 <= r1, tail = p1 > r1;
  auto slot = [&](ll b, int kind) { return ws + ((b * 2 + kind) * gridDim.y + blockIdx.y) * CT; };
  for (int i = tid; i < (G + 1) * CT; i += NT) {
    int g = i / CT, c = i - g * CT, j = g - 1;
    bool part = g == G;
    if (col0 + c >= cols || (part ? !tail : flag[g] < 0)) continue;
    A sum = part ? A(0) : hd[g * CT + c];
    for (; j >= 0; --j) {
      sum += cy[j * CT + c];
      if (flag[j] >= 0) break;
    }
    if (part) slot(tile, 0)[c] = sum;
    else if (j < 0 && head) slot(tile, 1)[c] = sum;
    else emit(flag[g], c, sum);
  }
  __syncthreads();
  if (tid < 2) {
    int mine = 0;
    if (tid ? tail : head) {
      ll a = (tid ? p0 : o0) / TR, b = ((tid ? p1 : o1) - 1) / TR;
      unsigned before;
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
      asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter + a * gridDim.y + blockIdx.y) : "memory");
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
      mine = before == (unsigned)(b - a);
      if (mine) counter[a * gridDim.y + blockIdx.y] = 0;
    }
    final[tid] = mine;
  }
  after(head);
  if (!head && !tail) return;
  __syncthreads();
  for (int which = 0; which < 2; ++which) {
    if (!final[which]) continue;
    ll a = (which ? p0 : o0) / TR, b = ((which ? p1 : o1) - 1) / TR;
    int nv = CT / VA, groups = (int)min((ll)(NT / nv), b - a + 1), g = tid / nv, q = tid - g * nv;
    P sum;
    #pragma unroll
    for (int i = 0; i < VA; ++i) sum.at[i] = 0;
    if (g < groups) {
      ll k = a + g;
      for (; k + 7 * groups <= b; k += 8 * groups) {
        P v[8];
        #pragma unroll
        for (int u = 0; u < 8; ++u) {
          ll kk = k + u * groups;
          uint4 w = __ldcg(reinterpret_cast<const uint4*>(slot(kk, kk == b)) + q);
          v[u] = *reinterpret_cast<P*>(&w);
        }
        #pragma unroll
        for (int u = 0; u < 8; ++u)
          #pragma unroll
          for (int i = 0; i < VA; ++i) sum.at[i] += v[u].at[i];
      }
      #pragma unroll 4
      for (; k <= b; k += groups) {
        uint4 w = __ldcg(reinterpret_cast<const uint4*>(slot(k, k == b)) + q);
        P v = *reinterpret_cast<P*>(&w);
        #pragma unroll
        for (int i = 0; i < VA; ++i) sum.at[i] += v.at[i];
      }
      reinterpret_cast<P*>(red)[tid] = sum;
    }
    __syncthreads();
    for (int m = groups; m > 1;) {
      int h = (m + 1) / 2;
      if (g < m - h) {
        P v = reinterpret_cast<P*>(red)[tid + h * nv];
        #pragma unroll
        for (int i = 0; i < VA; ++i) sum.at[i] += v.at[i];
        reinterpret_cast<P*>(red)[tid] = sum;
      }
      __syncthreads();
      m = h;
    }
    ll s = which ? hi : lo;
    for (int c = tid; c < CT && col0 + c < cols; c += NT) y[s * cols + col0 + c] = T(red[c]);
    __syncthreads();
  }
}

// Rows of many bytes: L lanes a row, V elements a lane, K consecutive rows a worker.
template <typename T, int V, int L, int K, int NT, int MIN>
__global__ void __launch_bounds__(NT, MIN) rows_wide(const T* __restrict__ x, const ll* __restrict__ off, T* __restrict__ y,
    typename Wide<T>::type* __restrict__ ws, unsigned* counter, int bank, ll rows, ll segs, int cols) {
  typedef typename Wide<T>::type A;
  typedef typename Bits<V * sizeof(T)>::type B;
  constexpr int W = NT / L, TR = W * K, G = NT / 32, CT = L * V, U = K < UNROLL ? K : UNROLL;
  static_assert(TR % 32 == 0 && 32 % K == 0);
  __shared__ int mark[TR];
  __shared__ unsigned bits[TR / 32];
  __shared__ alignas(16) A own[NT * V], joined[L < 32 ? G * CT : 1], cy[G * CT], red[NT * 16 / sizeof(A)];
  A* hd = L < 32 ? joined : own;
  __shared__ int flag[G];
  if (!counter) counter = arrivals + bank * COUNTERS;
  const int tid = threadIdx.x, w = tid / L, l = tid % L, warp = tid / 32;
  const int col0 = blockIdx.y * CT, col = col0 + l * V;
  const ll r0 = blockIdx.x * (ll)TR;
  const int n = (int)max(0ll, min((ll)TR, rows - r0));
  const int mine = col < cols ? n - w * K : 0;  // rows of this worker, up to K
  const T* p = x + (r0 + w * K) * cols + col;
  B v[U];
  #pragma unroll
  for (int u = 0; u < U; ++u)
    if (u < mine) v[u] = fetch<(L > 1), B>(p + u * (ll)cols);
  for (int i = tid; i < TR / 32; i += NT) bits[i] = 0;

  A acc[V];
  #pragma unroll
  for (int i = 0; i < V; ++i) acc[i] = 0;
  Share<NT> share(off, segs);
  ll lo = 0, hi = 0;
  if (n) find<NT>(off, segs, r0, n, mark, bits, lo, hi);
  share.template clear<L>(off, [&](ll s) { if (col < cols) put<T, V>(y + s * cols + col, acc); });
  if (n == 0) return;

  __syncthreads();

  unsigned ends = mine > 0 ? ends_of<K>(bits, w * K) : 0;
  int first = -1;
  #pragma unroll 1
  for (int k = 0; k < K; k += U) {
    if (k) {
      #pragma unroll
      for (int u = 0; u < U; ++u)
        if (k + u < mine) v[u] = fetch<(L > 1), B>(p + (k + u) * (ll)cols);
    }
    #pragma unroll
    for (int u = 0; u < U; ++u)
      if (k + u < mine) {
        add<T, V>(acc, v[u]);
        if (ends >> (k + u) & 1) {
          int m = mark[w * K + k + u];
          if (first < 0) {
            first = m;
            #pragma unroll
            for (int i = 0; i < V; ++i) own[tid * V + i] = acc[i];
          } else {
            put<T, V>(y + (lo + m) * cols + col, acc);
          }
          #pragma unroll
          for (int i = 0; i < V; ++i) acc[i] = 0;
        }
      }
  }
  __syncwarp();
  // Lanes beyond the columns saw no rows; every lane of a worker needs its flag.
  first = __shfl_sync(~0u, first, 0, L);
  if constexpr (L < 32) {
    bool open;
    A head[V];
    #pragma unroll
    for (int i = 0; i < V; ++i) head[i] = first >= 0 ? own[tid * V + i] : A(0);
    join<L, V>(head, acc, first >= 0, open);
    if (first >= 0) {
      if (open) {
        #pragma unroll
        for (int i = 0; i < V; ++i) hd[warp * CT + l * V + i] = head[i];
        if (l == 0) flag[warp] = first;
      } else if (col < cols) {
        put<T, V>(y + (lo + first) * cols + col, head);
      }
    }
  } else if (first >= 0 && l == 0) {
    flag[warp] = first;
  }
  if (!__any_sync(~0u, first >= 0) && (tid & 31) == 0) flag[warp] = -1;
  if ((tid & 31) >= 32 - L) {
    #pragma unroll
    for (int i = 0; i < V; ++i) cy[warp * CT + l * V + i] = acc[i];
  }
  __syncthreads();
  finish<NT>(off, y, ws, counter, hd, cy, flag, red, G, CT, TR, r0, n, lo, hi, cols, col0,
      [&](int f, int c, A sum) { y[(lo + f) * cols + col0 + c] = T(sum); }, [](bool) {});
}

// Rows of few bytes: the tile goes through shared memory. A warp takes a column of 32 * K rows, a lane K consecutive rows.
template <typename T, int K, int NT>
__global__ void __launch_bounds__(NT) rows_narrow(const T* __restrict__ x, const ll* __restrict__ off, T* __restrict__ y,
    typename Wide<T>::type* __restrict__ ws, unsigned* counter, int bank, ll rows, ll segs, int cols, int G, int CT, int aligned) {
  typedef typename Wide<T>::type A;
  extern __shared__ __align__(16) unsigned char memory[];
  if (!counter) counter = arrivals + bank * COUNTERS;
  const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32, TR = G * 32 * K;
  int* mark = reinterpret_cast<int*>(memory);
  unsigned char* data = memory + TR * 4;  // a multiple of 1024 bytes
  __shared__ unsigned bits[NT / 32 * K];
  A* hd = reinterpret_cast<A*>(data + (TR * cols * (int)sizeof(T) + 1023) / 1024 * 1024);
  A* cy = hd + G * CT;
  __shared__ alignas(16) A red[NT * 16 / sizeof(A)];
  __shared__ int flag[NT / 32];
  const ll r0 = blockIdx.x * (ll)TR;
  const int n = (int)max(0ll, min((ll)TR, rows - r0)), count = n * cols;
  const T* from = x + r0 * cols;
  constexpr int E = 16 / sizeof(T);
  auto at = [&](int e) -> T& {
    int byte = e * (int)sizeof(T);
    return *reinterpret_cast<T*>(data + (swizzle(byte >> 4) << 4 | (byte & 15)));
  };
  const int units = aligned ? count / E : 0;
  const unsigned base = (unsigned)__cvta_generic_to_shared(data);
  for (int u = tid; u < units; u += NT)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(base + (swizzle(u) << 4)), "l"(from + u * E) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int i = tid; i < TR / 32; i += NT) bits[i] = 0;
  for (int e = units * E + tid; e < count; e += NT) at(e) = from[e];

  Share<NT> share(off, segs);
  ll lo = 0, hi = 0;
  if (n) find<NT>(off, segs, r0, n, mark, bits, lo, hi);
  share.template clear<1>(off, [&](ll s) { for (int c = 0; c < cols; ++c) y[s * cols + c] = T(0.0f); });
  if (n == 0) return;

  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();

  for (int unit = warp; unit < G * cols; unit += NT / 32) {
    const int g = unit / cols, c = unit - g * cols, begin = g * 32 * K + lane * K;
    A acc[1] = {0}, head[1] = {0};
    int first = -1;
    const unsigned ends = ends_of<K>(bits, begin);
    auto step = [&](A value, int k) {
      acc[0] += value;
      if (ends >> k & 1) {
        int m = mark[begin + k];
        if (first < 0) { first = m; head[0] = acc[0]; }
        else y[(lo + m) * cols + c] = T(acc[0]);
        acc[0] = 0;
      }
    };
    #pragma unroll 4
    for (int k = 0; k < K; ++k)
      if (begin + k < n) step(A(at((begin + k) * cols + c)), k);
    __syncwarp();
    bool open;
    join<1, 1>(head, acc, first >= 0, open);
    if (first >= 0) {
      if (open) { hd[g * CT + c] = head[0]; flag[g] = first; }
      else y[(lo + first) * cols + c] = T(head[0]);
    }
    if (!__any_sync(~0u, first >= 0) && lane == 0) flag[g] = -1;
    if (lane == 31) cy[g * CT + c] = acc[0];
  }
  __syncthreads();
  finish<NT>(off, y, ws, counter, hd, cy, flag, red, G, CT, TR, r0, n, lo, hi, cols, 0,
      [&](int f, int c, A sum) { y[(lo + f) * cols + c] = T(sum); }, [](bool) {});
}

// One column: running sums of each lane's K values replace them in shared memory, and segments fetch theirs at their last row.
template <typename T, int K, int NT, int MIN>
__global__ void __launch_bounds__(NT, MIN) rows_one(const T* __restrict__ x, const ll* __restrict__ off, T* __restrict__ y,
    typename Wide<T>::type* __restrict__ ws, unsigned* counter, int bank, ll rows, ll segs, int cols, int aligned) {
  typedef typename Wide<T>::type A;
  constexpr int TR = NT * K, G = NT / 32, CT = 16 / sizeof(A), E = 16 / sizeof(T), S = 16 / sizeof(A);
  constexpr bool SAME = sizeof(T) == sizeof(A);
  __shared__ alignas(16) unsigned char data[TR * sizeof(T)], sums[SAME ? 16 : TR * sizeof(A)];
  __shared__ alignas(16) A red[NT * CT];
  __shared__ A hd[G * CT], cy[G * CT];
  __shared__ unsigned bits[TR / 32];
  __shared__ int flag[G];
  unsigned char* res = SAME ? data : sums;
  if (!counter) counter = arrivals + bank * COUNTERS;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid / 32, begin = tid * K;
  const ll r0 = blockIdx.x * (ll)TR;
  const int n = (int)max(0ll, min((ll)TR, rows - r0));
  const T* from = x + r0;
  const int units = aligned ? n / E : 0;
  const unsigned base = (unsigned)__cvta_generic_to_shared(data);
  for (int u = tid; u < units; u += NT)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(base + (swizzle(u) << 4)), "l"(from + u * E) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int e = units * E + tid; e < n; e += NT) reinterpret_cast<T*>(data)[swizzle(e / E) * E + e % E] = from[e];
  for (int i = tid; i < TR / 32; i += NT) bits[i] = 0;
  auto at = [&](int row) -> A& { return reinterpret_cast<A*>(res)[swizzle(row / S) * S + row % S]; };

  Share<NT> share(off, segs);
  ll lo = 0, hi = 0;
  if (n) {
    locate<NT>(off, segs, r0, n, lo, hi);
    each_end<NT>(off, r0, n, lo, hi, [&](int r, ll) { atomicOr(bits + (r >> 5), 1u << (r & 31)); });
  }
  share.template clear<1>(off, [&](ll s) { y[s] = T(0.0f); });
  if (n == 0) return;
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();

  // Rows beyond the last one hold anything: no segment ends there.
  A acc[1] = {0}, head[1] = {0};
  const unsigned ends = ends_of<K>(bits, begin);
  #pragma unroll
  for (int k = 0; k < K; k += E) {
    uint4 raw = reinterpret_cast<const uint4*>(data)[swizzle((begin + k) / E)];
    Pack<T, E> v = *reinterpret_cast<Pack<T, E>*>(&raw);
    #pragma unroll
    for (int i = 0; i < E; i += S) {
      Pack<A, S> out;
      #pragma unroll
      for (int j = 0; j < S; ++j) {
        acc[0] += A(v.at[i + j]);
        out.at[j] = acc[0];
        if (ends >> (k + i + j) & 1) acc[0] = 0;
      }
      reinterpret_cast<Pack<A, S>*>(res)[swizzle((begin + k + i) / S)] = out;
    }
  }
  const int first = begin + __ffs(ends) - 1;
  if (ends) head[0] = at(first);
  bool open;
  join<1, 1>(head, acc, ends != 0, open);
  if (ends) {
    if (open) { hd[warp * CT] = head[0]; flag[warp] = first; }
    else at(first) = head[0];
  }
  if (!__any_sync(~0u, ends != 0) && lane == 0) flag[warp] = -1;
  if (lane == 31) cy[warp * CT] = acc[0];
  __syncthreads();
  finish<NT>(off, y, ws, counter, hd, cy, flag, red, G, CT, TR, r0, n, lo, hi, 1, 0,
      [&](int f, int, A sum) { at(f) = sum; },
      [&](bool partial) { each_end<NT>(off, r0, n, lo, hi, [&](int r, ll s) { if (s != lo || !partial) y[s] = T(at(r)); }); });
}
"""
TYPES = {
    torch.bfloat16: "__nv_bfloat16",
    torch.float32: "float",
    torch.float16: "__half",
    torch.float64: "double",
}
# Constants: rows a worker takes, threads a block, blocks a multiprocessor.
K_LONG = 32  # many rows
K_SHORT = 16  # too few rows to fill the device with K_LONG
THREADS = 256
THREADS_FEW = 128  # up to 8 lanes a row
THREADS_SHORT = 512
MIN = 4
K_ONE, THREADS_ONE = 32, 128  # one column
K_ONE_SHORT = 16  # one column, few rows
MIN_ONE = 8
FILL = 600  # blocks that fill the device

bank_of_call = itertools.count()


@functools.cache
def compiled(name: str):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


def run(values, offsets):
    segments = offsets.shape[0] - 1
    rows, cols = values.shape
    y = torch.empty((segments, cols), dtype=values.dtype, device=values.device)
    if y.numel() == 0:
        return y
    values, offsets = values.contiguous(), offsets.contiguous()
    size, kind = values.element_size(), TYPES[values.dtype]
    wide = 8 if size == 8 else 4
    aligned = values.data_ptr() % 16 == 0
    vector = 16 // size if aligned and cols * size % 16 == 0 else 1
    shared, extra = 0, ()
    if cols == 1:
        threads, across, parts = THREADS_ONE, 1, 16 // wide
        k = K_ONE if size < 8 and rows >= FILL * threads * K_ONE else K_ONE_SHORT
        tile = threads * k
        name = f"rows_one<{kind}, {k}, {threads}, {MIN_ONE if size < 8 else 4}>"
        extra = (numpy.int32(aligned),)
        zeros = 8 * threads
    elif vector > 1 or cols * size >= 128:
        lanes = 1
        while lanes < 32 and lanes * vector < cols:
            lanes *= 2
        threads, k = THREADS_FEW if lanes <= 8 else THREADS, K_LONG
        across = -(-cols // (lanes * vector))
        if -(-rows // (threads // lanes * k)) * across < FILL:
            threads, k = THREADS_SHORT, K_SHORT
        tile, parts = threads // lanes * k, lanes * vector
        least = max(1, MIN * 256 // threads)
        name = f"rows_wide<{kind}, {vector}, {lanes}, {k}, {threads}, {least}>"
        zeros = 8 * threads // lanes  # empty segments a block zeroes at most if there are few rows
    else:
        threads, across, k = 256, 1, 8
        groups = max(1, min(8, 32768 // (32 * k * (cols * size + 4))))
        parts = -(-cols * wide // 16) * 16 // wide
        tile = groups * 32 * k
        shared = tile * 4 + -(-tile * cols * size // 1024) * 1024 + 2 * groups * parts * wide
        name = f"rows_narrow<{kind}, {k}, {threads}>"
        extra = (numpy.int32(groups), numpy.int32(parts), numpy.int32(aligned))
        zeros = 8 * threads
    tiles = -(-rows // tile)
    blocks = max(tiles, -(-segments // zeros) if segments > zeros * tiles * 4 else 1, 1)
    scratch = torch.float64 if size == 8 else torch.float32
    ws = torch.empty(max(tiles * 2 * across * parts, 1), dtype=scratch, device=values.device)
    counters = 0
    if tiles * across > COUNTERS:
        spare = torch.zeros(tiles * across, dtype=torch.int32, device=values.device)
        counters = spare.data_ptr()
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    config = LaunchConfig(grid=(blocks, across), block=(threads,), shmem_size=shared)
    launch(
        stream, config, compiled(name), values.data_ptr(), offsets.data_ptr(), y.data_ptr(), ws.data_ptr(),
        numpy.uint64(counters), numpy.int32(next(bank_of_call) % BANKS), numpy.int64(rows), numpy.int64(segments),
        numpy.int32(cols), *extra,
    )  # fmt: skip
    return y
