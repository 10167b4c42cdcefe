"""segment_sum: y[s] = sum of values[offsets[s]:offsets[s + 1]], row by row; an empty segment gives 0.

Rows are cut into equal ranges, one for each warp (seg_rows) or block (seg_scalar), whatever the segments are. Segments that
cross blocks leave fp32 partial sums; the last block to arrive at a segment adds them in a fixed order.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
typedef long long ll;
typedef unsigned int u32;
#ifndef NW
#define NW 16
#endif
#ifndef STAGE
#define STAGE 4096
#endif
#ifndef NST
#define NST 3
#endif
#ifndef PERSM
#define PERSM 1
#endif
#ifndef SPERSM
#define SPERSM 4
#endif

__device__ __forceinline__ float tof(float v) { return v; }
__device__ __forceinline__ float tof(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ __forceinline__ float tof(__half v) { return __half2float(v); }
template <typename T> __device__ __forceinline__ T fromf(float v);
template <> __device__ __forceinline__ float fromf<float>(float v) { return v; }
template <> __device__ __forceinline__ __nv_bfloat16 fromf<__nv_bfloat16>(float v) { return __float2bfloat16(v); }
template <> __device__ __forceinline__ __half fromf<__half>(float v) { return __float2half(v); }

template <typename T, int V> struct alignas(sizeof(T) * V) Vec { T v[V]; };

__device__ __forceinline__ u32 saddr(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void bar_init(u32 b) { asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b) : "memory"); }
__device__ __forceinline__ void bar_expect(u32 b, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(u32 b, u32 phase) {
  asm volatile(
      "{\n .reg .pred p;\n W_%=:\n mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n @p bra D_%=;\n bra W_%=;\n D_%=:\n }"
      ::"r"(b), "r"(phase) : "memory");
}
__device__ __forceinline__ void bulk(u32 dst, const void* src, u32 bytes, u32 b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(dst), "l"(src), "r"(bytes), "r"(b) : "memory");
}

// Rows and segment ends form one sequence in which an end weighs as much as W rows: the end of segment p lies at
// key(p) = off[p + 1] + W * (p + 1). How many keys are <= da, and how many <= db. By a whole warp.
__device__ __forceinline__ void search2(const ll* __restrict__ off, ll S, int W, ll da, ll db, int lane, ll& sa, ll& sb) {
  ll lo[2] = {0, 0}, len[2] = {S, S};
  while (len[0] > 0 || len[1] > 0) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      ll step = len[h] < 129 ? 1 : (ll)((unsigned long long)(len[h] + 128) >> 7), d = h ? db : da;
      bool ok[4];
#pragma unroll
      for (int k = 0; k < 4; k++) {
        ll p = (ll)(k * 32 + lane + 1) * step - 1;
        ok[k] = p < len[h] && __ldg(off + lo[h] + p + 1) + W * (lo[h] + p + 1) <= d;
      }
      int c = 0;
#pragma unroll
      for (int k = 0; k < 4; k++) c += __popc(__ballot_sync(~0u, ok[k]));
      ll adv = c * step, rest = len[h] - adv;
      lo[h] += adv;
      len[h] = rest < step - 1 ? rest : step - 1;
    }
  }
  sa = lo[0];
  sb = lo[1];
}

__device__ __forceinline__ ll quot(ll a, ll q) {
  if (((a | q) >> 32) == 0) return (u32)a / (u32)q;
  return a / q;
}

// MODE 0: a stage is a contiguous piece; 1: a stage is copied row by row (a block of columns); 2: straight from global memory.
template <typename T, int V, int LG, int J, int MODE>
__global__ void __launch_bounds__(NW * 32, PERSM) seg_rows(const T* __restrict__ x, const ll* __restrict__ off, T* __restrict__ y,
                                                       float* __restrict__ part, int* __restrict__ cnt, ll rows, ll S, ll C,
                                                       ll Q, int W, int SR) {
  constexpr int RG = 32 / LG;
  constexpr int CW = LG * J * V;
  constexpr int PC = CW < 4 ? 4 : CW;
  constexpr int NT = NW * 32;
  typedef Vec<T, V> VT;
  extern __shared__ __align__(128) unsigned char smem[];
  __shared__ __align__(8) unsigned long long bars[NW * NST];
  __shared__ ll m_first[NW];
  __shared__ int m_has[NW];
  __shared__ ll m_seg[2];  // the segments that the block's head and tail belong to,
  __shared__ ll m_from[2], m_to[2];  // and the blocks that these span
  __shared__ int m_pub[2], m_last[2];
  const int w = threadIdx.x / 32, lane = threadIdx.x % 32, G = gridDim.x, b = blockIdx.x;
  const int lg = lane % LG, g = lane / LG;
  const ll c0 = (ll)blockIdx.y * CW;
  const int width = (int)(C - c0 < CW ? C - c0 : CW);
  const ll D = rows + W * S, dA = b * Q, dB = dA + Q < D ? dA + Q : D;
  const ll da = dA + (dB - dA) * w / NW, db = dA + (dB - dA) * (w + 1) / NW;
  ll ra = da, rb = db, s = 0, s1 = 0;
  unsigned char* mine = smem + w * (NST * STAGE);
  const u32 bar0 = saddr(bars + w * NST), mine0 = saddr(mine);
  const int pitch = MODE == 0 ? (int)C : CW;
  int n = 0, nst = 0, skip = 0;
  const T* xr = x;
  auto place = [&]() {
    n = (int)(rb - ra);
    nst = MODE == 2 ? 0 : (n + SR - 1) / SR;
    xr = x + ra * C + c0;
    if (MODE == 0) skip = (int)(((ll)(ra * C) * (int)sizeof(T) & 15) / (int)sizeof(T));
  };
  const ll all = rows * C;

  auto issue = [&](int k) {
    int slot = k % NST, r0 = k * SR, nr = min(SR, n - r0);
    u32 bar = bar0 + slot * 8, dst = mine0 + slot * STAGE;
    if (MODE == 0) {
      if (lane == 0) {
        const T* src = xr + (ll)r0 * C - skip;
        u32 bytes = (u32)((skip + nr * (int)C) * (int)sizeof(T)) + 15 & ~15u;
        ll left = (ll)((const char*)(x + all) - (const char*)src) & ~15ll;
        if (left < bytes) bytes = (u32)left;
        bar_expect(bar, bytes);
        if (bytes) bulk(dst, src, bytes, bar);
      }
    } else {
      u32 bytes = width * sizeof(T);
      if (lane == 0) bar_expect(bar, bytes * nr);
      __syncwarp();
      for (int r = lane; r < nr; r += 32) bulk(dst + r * (CW * (int)sizeof(T)), xr + (ll)(r0 + r) * C, bytes, bar);
    }
  };
  int issued = 0;
  if (MODE != 2) {
    if (lane == 0) {
      for (int k = 0; k < NST; k++) bar_init(bar0 + k * 8);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncwarp();
  }
  if (W == 0) {
    place();
    if (MODE != 2)
      for (; issued < NST && issued < nst; issued++) issue(issued);
  }
  search2(off, S, W, da, db, lane, s, s1);
  if (da == 0) {
    if (w == 0) s = 0;
  }
  if (W != 0) {
    ra = rb = rows;
    if (s < S) ra = min(__ldg(off + s + 1), da - W * s);
    if (s1 < S) rb = min(__ldg(off + s1 + 1), db - W * s1);
    place();
    if (MODE != 2)
      for (; issued < NST && issued < nst; issued++) issue(issued);
  }
  const ll s0 = s;
  if (lane == 0 && w == 0) {
    // Of the segments that end here only the first can have begun in an earlier block.
    bool pub = false;
    ll from = 0;
    if (s < S) {
      from = quot(__ldg(off + s) + W * s, Q);
      pub = from < b && __ldg(off + s + 1) + W * (s + 1) <= dB;
    }
    m_pub[0] = pub;
    m_from[0] = from;
    m_to[0] = b;
    m_seg[0] = s;
  }
  if (lane == 0 && w == NW - 1) {
    bool pub = false;
    ll from = 0, to = 0;
    if (s1 < S) {
      ll key = __ldg(off + s1) + W * s1;
      pub = key < dB;
      if (pub) {
        from = quot(key, Q);
        to = quot(__ldg(off + s1 + 1) + W * (s1 + 1) - 1, Q);
      }
    }
    m_pub[1] = pub;
    m_from[1] = from;
    m_to[1] = to;
    m_seg[1] = s1;
  }

  auto ends = [&](ll at) {
    ll j = at + lane;
    if (j >= S) return 0x7fffffff;
    ll e = __ldg(off + j + 1) - ra;
    return e > 0x7fffffff ? 0x7fffffff : (int)e;
  };
  int cur = ends(s), nxt = ends(s + 32), idx = 0;
  float acc[J][V], head[J][V];
#pragma unroll
  for (int j = 0; j < J; j++)
#pragma unroll
    for (int v = 0; v < V; v++) acc[j][v] = head[j][v] = 0.f;
  bool active[J];
#pragma unroll
  for (int j = 0; j < J; j++) active[j] = (lg + j * LG) * V < width;
  int row = 0, st = -1, st_begin = 0, st_end = MODE == 2 ? n : 0;
  const T* base = MODE == 2 ? xr : (const T*)mine + skip;
  const ll step = MODE == 2 ? C : (ll)pitch;

  auto reduce = [&]() {
#pragma unroll
    for (int d = LG; d < 32; d *= 2)
#pragma unroll
      for (int j = 0; j < J; j++)
#pragma unroll
        for (int v = 0; v < V; v++) acc[j][v] += __shfl_xor_sync(~0u, acc[j][v], d);
  };

  while (true) {
    if (idx == 32) {
      cur = nxt;
      idx = 0;
      nxt = ends(s + 32);
    }
    if (RG > 1 && s > s0 && s + 1 < s1) {
      // Short segments that lie in this stage: one for each group of lanes.
      int at = idx + g;
      int hi = __shfl_sync(~0u, cur, at & 31), lo = __shfl_sync(~0u, cur, (at - 1) & 31);
      if (g == 0) lo = row;
      bool fit = at < 32 && s + g < s1 && hi <= st_end && hi - lo <= 16;
      u32 miss = ~__ballot_sync(~0u, fit);
      int m = miss ? (__ffs(miss) - 1) / LG : RG;
      if (m > 1) {
        if (g < m) {
#pragma unroll
          for (int j = 0; j < J; j++)
            if (active[j]) {
              const T* p = base + (ll)(lg + j * LG) * V;
              int r = lo - st_begin, h = hi - st_begin;
              float a[V];
#pragma unroll
              for (int v = 0; v < V; v++) a[v] = 0.f;
              for (; r + 3 < h; r += 4) {
                VT t[4];
#pragma unroll
                for (int q = 0; q < 4; q++) t[q] = *(const VT*)(p + (r + q) * step);
#pragma unroll
                for (int q = 0; q < 4; q++)
#pragma unroll
                  for (int v = 0; v < V; v++) a[v] += tof(t[q].v[v]);
              }
              for (; r < h; r++) {
                VT t = *(const VT*)(p + r * step);
#pragma unroll
                for (int v = 0; v < V; v++) a[v] += tof(t.v[v]);
              }
              VT t;
#pragma unroll
              for (int v = 0; v < V; v++) t.v[v] = fromf<T>(a[v]);
              *(VT*)(y + (s + g) * C + c0 + (lg + j * LG) * V) = t;
            }
        }
        __syncwarp();
        row = __shfl_sync(~0u, cur, idx + m - 1);
        s += m;
        idx += m;
        continue;
      }
    }
    const bool whole = s < s1;
    int e = __shfl_sync(~0u, cur, idx);
    int stop = whole ? e : n;
    bool some = row < stop;
    while (row < stop) {
      if (MODE != 2 && row == st_end) {
        if (st >= 0) {
          __syncwarp();
          if (issued < nst) issue(issued++);
        }
        st++;
        bar_wait(bar0 + (st % NST) * 8, (st / NST) & 1);
        st_begin = st * SR;
        st_end = min(n, st_begin + SR);
        base = (const T*)(mine + (st % NST) * STAGE) + skip;
        if (MODE == 0) {
          // The last bytes of the tensor that make no 16.
          const ll at0 = (ra + st_begin) * C;
          int total = (st_end - st_begin) * (int)C;
          ll done = ((all - at0 + skip) * (int)sizeof(T) & ~15ll) / (int)sizeof(T) - skip;
          if (done < total) {
            int at = (int)done + lane;
            if (at >= 0 && at < total) ((T*)base)[at] = x[at0 + at];
            __syncwarp();
          }
        }
      }
      int hi = min(stop, st_end);
#pragma unroll
      for (int j = 0; j < J; j++)
        if (active[j]) {
          const T* p = base + (ll)(lg + j * LG) * V;
          int r = row + g - st_begin, h = hi - st_begin;
          constexpr int UN = 4;
          for (; r + (UN - 1) * RG < h; r += UN * RG) {
            VT t[UN];
#pragma unroll
            for (int q = 0; q < UN; q++) t[q] = *(const VT*)(p + (r + q * RG) * step);
#pragma unroll
            for (int q = 0; q < UN; q++)
#pragma unroll
              for (int v = 0; v < V; v++) acc[j][v] += tof(t[q].v[v]);
          }
          for (; r < h; r += RG) {
            VT t = *(const VT*)(p + r * step);
#pragma unroll
            for (int v = 0; v < V; v++) acc[j][v] += tof(t.v[v]);
          }
        }
      __syncwarp();
      row = hi;
    }
    if (!whole) break;
    if (some) reduce();
    if (s == s0) {
#pragma unroll
      for (int j = 0; j < J; j++)
#pragma unroll
        for (int v = 0; v < V; v++) head[j][v] = acc[j][v];
    } else if (g == 0) {
#pragma unroll
      for (int j = 0; j < J; j++)
        if (active[j]) {
          VT t;
#pragma unroll
          for (int v = 0; v < V; v++) t.v[v] = fromf<T>(acc[j][v]);
          *(VT*)(y + s * C + c0 + (lg + j * LG) * V) = t;
        }
    }
#pragma unroll
    for (int j = 0; j < J; j++)
#pragma unroll
      for (int v = 0; v < V; v++) acc[j][v] = 0.f;
    s++;
    idx++;
  }
  reduce();
  __syncwarp();
  float* area = (float*)mine;
  if (g == 0) {
#pragma unroll
    for (int j = 0; j < J; j++)
#pragma unroll
      for (int v = 0; v < V; v++) {
        area[(lg + j * LG) * V + v] = head[j][v];
        area[PC + (lg + j * LG) * V + v] = acc[j][v];
      }
  }
  if (lane == 0) {
    m_has[w] = s0 < s1;
    m_first[w] = s0;
  }
  __syncthreads();

  // The block's warps in order.
  const bool pub_head = m_pub[0], pub_tail = m_pub[1];
  float* const gpart = part + (ll)blockIdx.y * G * 2 * PC;
  for (int c = threadIdx.x; c < width; c += NT) {
    float run = 0.f, hd = 0.f;
    bool seen = false;
#pragma unroll
    for (int k = 0; k < NW; k++) {
      const float* a = (const float*)(smem + k * (NST * STAGE));
      float hk = a[c], tk = a[PC + c];
      if (m_has[k]) {
        float tot = run + hk;
        if (!seen && pub_head) hd = tot;
        else y[m_first[k] * C + c0 + c] = fromf<T>(tot);
        seen = true;
        run = tk;
      } else run += tk;
    }
    if (pub_head) __stcg(gpart + (ll)b * 2 * PC + c, hd);
    if (pub_tail) __stcg(gpart + ((ll)b * 2 + 1) * PC + c, run);
  }
  if (!pub_head && !pub_tail) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x < 2) {
    int last = 0;
    if (threadIdx.x == 0 ? pub_head : pub_tail) {
      ll from = m_from[threadIdx.x], to = m_to[threadIdx.x];
      int* counter = cnt + (ll)blockIdx.y * G + to;
      last = atomicAdd(counter, 1) == (int)(to - from);
      if (last) *counter = 0;
      __threadfence();
    }
    m_last[threadIdx.x] = last;
  }
  __syncthreads();
  for (int side = 0; side < 2; side++) {
    if (!m_last[side]) continue;
    const ll from = m_from[side], to = m_to[side], seg = m_seg[side];
    constexpr int PV = PC / 4, GR = NT / PV;
    const int cv = threadIdx.x % PV, gr = threadIdx.x / PV;
    float4 a = make_float4(0.f, 0.f, 0.f, 0.f);
    if (gr < GR) {
#pragma unroll 8
      for (ll k = from + gr; k <= to; k += GR) {
        float4 t = __ldcg((const float4*)(gpart + (k * 2 + (k < to)) * PC) + cv);
        a.x += t.x; a.y += t.y; a.z += t.z; a.w += t.w;
      }
    }
    float4* red = (float4*)smem;
    __syncthreads();
    if (gr < GR) red[gr * PV + cv] = a;
    __syncthreads();
    for (int c = threadIdx.x; c < width; c += NT) {
      float t = 0.f;
      const int used = (int)(to - from + 1 < GR ? to - from + 1 : GR);
#pragma unroll 8
      for (int k = 0; k < used; k++) t += ((const float*)smem)[k * PC + c];
      y[seg * C + c0 + c] = fromf<T>(t);
    }
  }
}

// One column. A block of 256 threads has at most 8192 rows, 32 for each thread.
template <typename T, int ALIGNED>
__global__ void __launch_bounds__(256, SPERSM) seg_scalar(const T* __restrict__ x, const ll* __restrict__ off, T* __restrict__ y,
                                                      float* __restrict__ part, int* __restrict__ cnt, ll rows, ll S, ll Q) {
  constexpr int gran = 16 / sizeof(T);
  extern __shared__ __align__(128) float buf[];  // 256 * 36
  __shared__ u32 mask[256];
  __shared__ ll s_lo[2];
  __shared__ int s_count[8][2];
  __shared__ float w_tail[8];
  __shared__ int w_has[8];
  __shared__ float m_head;
  const int t = threadIdx.x, w = t / 32, lane = t % 32, b = blockIdx.x;
  const ll ra = b * Q, rb = ra + Q < rows ? ra + Q : rows;
  const int n = (int)(rb - ra);
  const T* xr = x + ra;
  mask[t] = 0;
  const int whole = ALIGNED ? n / gran * gran : 0;
  if (ALIGNED && sizeof(T) == 4) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
      int at = (k * 256 + t) * 4;
      if (at < whole)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(saddr(buf + (at >> 5) * 36 + (at & 31))), "l"(xr + at) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  Vec<T, gran> v2[4];
  if (ALIGNED && sizeof(T) == 2) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      int at = (k * 256 + t) * gran;
      if (at < whole) v2[k] = *(const Vec<T, gran>*)(xr + at);
    }
  }
  // How many ends are <= ra, and how many <= rb: 512 pivots for both, then 256 for each half of the block.
  ll lo, len;
  {
    ll step = S < 513 ? 1 : (ll)((unsigned long long)(S + 511) >> 9);
    int c[2] = {0, 0};
#pragma unroll
    for (int k = 0; k < 2; k++) {
      ll p = (ll)(k * 256 + t + 1) * step - 1;
      ll e = p < S ? __ldg(off + p + 1) : 0x7fffffffffffffffll;
      c[0] += __popc(__ballot_sync(~0u, e <= ra));
      c[1] += __popc(__ballot_sync(~0u, e <= rb));
    }
    if (lane < 2) s_count[w][lane] = c[lane];
    __syncthreads();
    int sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += s_count[k][w >= 4];
    lo = sum * step;
    len = S - lo < step - 1 ? S - lo : step - 1;
    while (__syncthreads_or(len > 0)) {
      ll st = len < 257 ? 1 : (len + 256) / 256;
      int d = 0;
#pragma unroll
      for (int k = 0; k < 2; k++) {
        ll p = (ll)(k * 128 + t % 128 + 1) * st - 1;
        d += __popc(__ballot_sync(~0u, p < len && __ldg(off + lo + p + 1) <= (w >= 4 ? rb : ra)));
      }
      if (lane == 0) s_count[w][0] = d;
      __syncthreads();
      int q = w & 4;
      ll adv = (s_count[q][0] + s_count[q + 1][0] + s_count[q + 2][0] + s_count[q + 3][0]) * st;
      lo += adv;
      len = len - adv < st - 1 ? len - adv : st - 1;
    }
    if (t % 128 == 0) s_lo[w >= 4] = t == 0 && b == 0 ? 0 : lo;
    __syncthreads();
  }
  const ll s0 = s_lo[0], s1 = s_lo[1];
  // The segments that other blocks have a share in: lane 0 of warp 0 the one that began before, lane 1 the one that goes on.
  bool pub = false;
  ll from = 0, to = 0, mine = 0;
  if (w == 0 && lane < 2) {
    mine = lane == 0 ? s0 : s1;
    if (lane == 0 ? s0 < s1 : s1 < S) {
      ll begin = __ldg(off + mine), end = __ldg(off + mine + 1);
      pub = lane == 0 ? begin < ra : begin < rb;
      if (pub) from = quot(begin, Q), to = quot(end - 1, Q);
    }
  }
  int spot[4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    ll s = s0 + k * 256 + t;
    spot[k] = -1;
    if (s < s1) {
      ll f = __ldg(off + s), e = __ldg(off + s + 1);
      int at = (int)(e - 1 - ra);
      if (f == e) y[s] = fromf<T>(0.f);
      else {
        atomicOr(&mask[at >> 5], 1u << (at & 31));
        if (f >= ra) spot[k] = at;
      }
    }
  }
#pragma unroll 4
  for (ll s = s0 + 1024 + t; s < s1; s += 256) {
    ll f = __ldg(off + s), e = __ldg(off + s + 1);
    if (f == e) y[s] = fromf<T>(0.f);
    else {
      int at = (int)(e - 1 - ra);
      atomicOr(&mask[at >> 5], 1u << (at & 31));
    }
  }
  if (ALIGNED && sizeof(T) == 2) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      int at = (k * 256 + t) * gran;
      if (at < whole)
#pragma unroll
        for (int q = 0; q < gran; q++) buf[(at >> 5) * 36 + (at & 31) + q] = tof(v2[k].v[q]);
    }
  }
#pragma unroll 8
  for (int at = whole + t; at < n; at += 256) buf[(at >> 5) * 36 + (at & 31)] = tof(xr[at]);
  for (int at = n + t; at < min(8192, (n + 31) & ~31); at += 256) buf[(at >> 5) * 36 + (at & 31)] = 0.f;
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  const u32 m = mask[t];
  float acc = 0.f;
  float* row = buf + t * 36;
  if (t * 32 < n) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
      float4 v = *(const float4*)(row + k * 4);
      float e[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int q = 0; q < 4; q++) {
        acc += e[q];
        if (m >> (k * 4 + q) & 1) {
          row[k * 4 + q] = acc;
          acc = 0.f;
        }
      }
    }
  }
  // Segmented scan of the threads' tails.
  float v = acc;
  bool f = m != 0;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    float ov = __shfl_up_sync(~0u, v, d);
    int of = __shfl_up_sync(~0u, (int)f, d);
    if (lane >= d) {
      if (!f) v += ov;
      f = f || of;
    }
  }
  float ev = __shfl_up_sync(~0u, v, 1);
  int ef = __shfl_up_sync(~0u, (int)f, 1);
  if (lane == 0) ev = 0.f, ef = 0;
  if (lane == 31) w_tail[w] = v, w_has[w] = f;
  __syncthreads();
  float carry = 0.f, total = 0.f;
  int seen = 0, any = 0;
#pragma unroll
  for (int k = 0; k < 8; k++) {
    if (k == w) carry = total, seen = any;
    total = w_has[k] ? w_tail[k] : total + w_tail[k];
    any |= w_has[k];
  }
  if (!ef) ev += carry;
  if (m) {
    float* p = row + (__ffs(m) - 1);
    float r = *p + ev;
    *p = r;
    if (!ef && !seen) m_head = r;
  }
  __syncthreads();
  int last = 0;
  if (pub) {
    __stcg(part + 2 * b + lane, lane == 0 ? m_head : total);
    __threadfence();
    last = atomicAdd(cnt + to, 1) == (int)(to - from);
  }
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (spot[k] >= 0) y[s0 + k * 256 + t] = fromf<T>(buf[(spot[k] >> 5) * 36 + (spot[k] & 31)]);
#pragma unroll 4
  for (ll s = s0 + 1024 + t; s < s1; s += 256) {
    ll f = __ldg(off + s), e = __ldg(off + s + 1);
    int at = (int)(e - 1 - ra);
    if (f < e) y[s] = fromf<T>(buf[(at >> 5) * 36 + (at & 31)]);
  }
  if (w != 0) return;
  if (last) {
    cnt[to] = 0;
    __threadfence();
  }
  __syncwarp();
  for (int side = 0; side < 2; side++) {
    if (!__shfl_sync(~0u, last, side)) continue;
    ll fr = __shfl_sync(~0u, from, side), en = __shfl_sync(~0u, to, side), seg = __shfl_sync(~0u, mine, side);
    float a = 0.f;
#pragma unroll 4
    for (ll k = fr + lane; k <= en; k += 32) a += __ldcg(part + 2 * k + (k < en));
#pragma unroll
    for (int d = 16; d; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    if (lane == 0) y[seg] = fromf<T>(a);
  }
}
"""
TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float16: "__half", torch.float32: "float"}
NW, STAGE, NST, PERSM, SPERSM, WAVES, WEIGHT = 16, 6144, 2, 1, 4, 1, 4
SLICES, SLICE = 64, 16384


@functools.cache
def compiled(name: str, shared: int):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    macros = {"NW": NW, "STAGE": STAGE, "NST": NST, "PERSM": PERSM, "SPERSM": SPERSM}
    source = "".join(f"#define {key} {value}\n" for key, value in macros.items()) + SOURCE
    kernel = Program(source, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if shared > 40 * 1024:
        handle = getattr(kernel, "handle", None)
        handle = int(kernel._handle if handle is None else handle)
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        error = driver.cuKernelSetAttribute(attribute, shared, driver.CUkernel(handle), driver.CUdevice(torch.cuda.current_device()))[0]
        if int(error):
            error = driver.cuFuncSetAttribute(driver.CUfunction(handle), attribute, shared)[0]
        if int(error):
            raise RuntimeError(str(error))
    return kernel


@functools.cache
def counters(device):
    """Arrival counters: zero between calls, each kernel leaves those it used at zero."""
    return torch.zeros(SLICES * SLICE, dtype=torch.int32, device=device), [0]


@functools.cache
def processors(device):
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def plan(rows, segments, cols, dtype, device, aligned):
    """The kernel, its grid, block, shared bytes, floats of partial sums and last arguments."""
    size = 2 if dtype != torch.float32 else 4
    name = TYPES[dtype]
    sms = processors(device)
    gran = 16 // size
    if cols == 1 and rows <= SLICE * 8000:
        blocks = max(1, -(-rows // 8192), min(SPERSM * sms, -(-rows // 512)))
        quota = max(gran, -(-rows // (blocks * gran)) * gran)
        blocks = max(1, -(-rows // quota))
        shared = 256 * 36 * 4
        kernel = compiled(f"seg_scalar<{name}, {int(aligned >= 16)}>", shared)
        return kernel, (blocks,), 256, shared, 2 * blocks, (numpy.int64(quota),)
    vector = gran
    while vector > 1 and (cols % vector or aligned < vector * size):
        vector //= 2
    pieces = cols // vector
    most = max(1, min(4, 16 // vector))
    lanes = 1
    while lanes < 32 and lanes < pieces:
        lanes *= 2
    steps = min(most, -(-pieces // lanes))
    width = lanes * steps * vector
    columns = -(-cols // width)
    slack = 0 if cols * size % 16 == 0 else 16
    if columns == 1 and aligned >= 16 and cols * size * (gran if slack else 1) + slack <= STAGE:
        mode = 0
        per = (STAGE - slack) // (cols * size * (gran if slack else 1)) * (gran if slack else 1)
    elif aligned >= 16 and not slack:
        mode, per = 1, max(1, STAGE // (width * size))
    else:
        mode, per = 2, 1
    if columns > SLICE:
        raise ValueError("too many columns")
    weight = min(32, WEIGHT * 32 // lanes)
    if segments * weight * 50 < rows:
        weight = 0
    total = rows + weight * segments
    least = max(1, 1024 // (min(width, cols) * size)) * NW
    slots = WAVES * PERSM * sms
    blocks = max(1, min(-(-total // least), slots // columns, SLICE // columns))
    quota = max(1, -(-total // blocks))
    blocks = max(1, -(-total // quota))
    shared = NW * NST * STAGE
    kernel = compiled(f"seg_rows<{name}, {vector}, {lanes}, {steps}, {mode}>", shared)
    floats = columns * blocks * 2 * max(4, width)
    return kernel, (blocks, columns), NW * 32, shared, floats, (numpy.int64(cols), numpy.int64(quota), numpy.int32(weight), numpy.int32(per))


def run(values, offsets):
    rows, cols = values.shape
    segments = offsets.shape[0] - 1
    device = values.device
    y = torch.empty((segments, cols), dtype=values.dtype, device=device)
    if segments == 0 or cols == 0:
        return y
    values, offsets = values.contiguous(), offsets.contiguous()
    pointer = values.data_ptr()
    aligned = min(16, pointer & -pointer) if pointer else 16
    kernel, grid, block, shared, floats, rest = plan(rows, segments, cols, values.dtype, device, aligned)
    part = torch.empty(floats, dtype=torch.float32, device=device)
    zeros, turn = counters(device)
    turn[0] = (turn[0] + 1) % SLICES
    stream = Stream.from_handle(torch.cuda.current_stream(device).cuda_stream)
    launch(
        stream,
        LaunchConfig(grid=grid, block=(block,), shmem_size=shared),
        kernel,
        pointer,
        offsets.data_ptr(),
        y.data_ptr(),
        part.data_ptr(),
        zeros.data_ptr() + 4 * SLICE * turn[0],
        numpy.int64(rows),
        numpy.int64(segments),
        *rest,
    )
    return y
