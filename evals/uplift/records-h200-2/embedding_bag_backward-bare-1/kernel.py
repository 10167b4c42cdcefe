"""embedding_bag_backward: y[v] = scale[v] * sum of grad[b] over all b and i with indices[b, i] = v.

One cooperative kernel. Each CTA hash-groups a chunk of indices in shared memory; groups with many hits become "virtual"
gradient rows (pre-summed), a global counting sort makes lists of rows, then warps gather.
"""

import functools

import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

OPTS = {}

SOURCE = r"""
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef HOTF
#define HOTF 8
#endif
#ifndef HOTB
#define HOTB 6
#endif
#ifdef PROF
#define PROFILE(i) if (cta == 5 && tid == 0) ((long long*)a.scratch)[8 + i] = clock64();
#else
#define PROFILE(i)
#endif
#define NT 1024
#define CHMAX 2048
#define HS 4096
#define MAXSEG 128
#define SEG 32
#define SHORT 8
#define ZB 16384
#define FULL 0xffffffffu
#define HOTBIT 0x80000000u

template <typename T> struct Tr;
template <> struct Tr<float> { static constexpr u32 hot = HOTF, pr = 1; };
template <> struct Tr<__nv_bfloat16> { static constexpr u32 hot = HOTB, pr = 2; };
template <> struct Tr<__half> { static constexpr u32 hot = 0x7fffffff, pr = 2; };

__device__ __forceinline__ float tof(float x) { return x; }
__device__ __forceinline__ float tof(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float tof(__half x) { return __half2float(x); }
__device__ __forceinline__ void fromf(float& d, float x) { d = x; }
__device__ __forceinline__ void fromf(__nv_bfloat16& d, float x) { d = __float2bfloat16_rn(x); }
__device__ __forceinline__ void fromf(__half& d, float x) { d = __float2half_rn(x); }

template <int B> struct Raw;
template <> struct Raw<16> { typedef uint4 t; static __device__ __forceinline__ uint4 zero() { return make_uint4(0, 0, 0, 0); } };
template <> struct Raw<8> { typedef uint2 t; static __device__ __forceinline__ uint2 zero() { return make_uint2(0, 0); } };
template <> struct Raw<4> { typedef u32 t; static __device__ __forceinline__ u32 zero() { return 0; } };
template <> struct Raw<2> { typedef unsigned short t; static __device__ __forceinline__ unsigned short zero() { return 0; } };

template <typename T, int V> struct Vec {
  union U { typename Raw<V * sizeof(T)>::t raw; T e[V]; __device__ U() {} };
  typedef typename Raw<V * sizeof(T)>::t raw_t;
  static __device__ __forceinline__ void add(float (&acc)[V], raw_t r) {
    U u; u.raw = r;
#pragma unroll
    for (int i = 0; i < V; i++) acc[i] += tof(u.e[i]);
  }
  static __device__ __forceinline__ void store(T* p, const float (&acc)[V], float s) {
    U u;
#pragma unroll
    for (int i = 0; i < V; i++) fromf(u.e[i], acc[i] * s);
    *(raw_t*)p = u.raw;
  }
  // p gets the rounded value, q the rounding error
  static __device__ __forceinline__ void split(T* p, T* q, const float (&acc)[V]) {
    U u, w;
#pragma unroll
    for (int i = 0; i < V; i++) { fromf(u.e[i], acc[i]); fromf(w.e[i], acc[i] - tof(u.e[i])); }
    *(raw_t*)p = u.raw;
    *(raw_t*)q = w.raw;
  }
};

template <typename T>
__device__ __forceinline__ const T* rowptr(const T* grad, const T* part, u32 e, u32 width) {
  return ((e & HOTBIT) ? part : grad) + (size_t)(e & ~HOTBIT) * width;
}

// A warp sums up to 32 rows; e is lane's row id. Result is in all lanes of equal lane % L.
template <typename T, int V, int L>
__device__ __forceinline__ void warp_rows(float (&acc)[V], const T* grad, const T* part, u32 e, u32 n, u32 col, bool ok,
                                          u32 width) {
  constexpr int R = 32 / L;
  constexpr int U = L >= 8 ? 8 : L;  // R * U <= 32
  typedef Vec<T, V> W;
  u32 sub = (threadIdx.x & 31) / L;
#pragma unroll
  for (int i = 0; i < V; i++) acc[i] = 0.f;
  for (u32 k = 0; k < n; k += R * U) {
    typename W::raw_t r[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
      u32 j = k + u * R + sub;
      u32 id = __shfl_sync(FULL, e, j & 31);
      r[u] = Raw<V * sizeof(T)>::zero();
      if (ok && j < n) r[u] = *(const typename W::raw_t*)(rowptr(grad, part, id, width) + col);
    }
#pragma unroll
    for (int u = 0; u < U; u++) W::add(acc, r[u]);
  }
#pragma unroll
  for (int o = L; o < 32; o <<= 1)
#pragma unroll
    for (int i = 0; i < V; i++) acc[i] += __shfl_xor_sync(FULL, acc[i], o);
}

struct Args {
  const void* grad; const long long* idx; const float* scale; void* y; char* scratch;
  u64 o_count, o_list, o_item, o_done, o_rows, o_seg, o_part, o_spill;
  u32 N, V, width, length, nch, CH, rowcap, share, zrows;
};

template <typename T, int V, int L>
__global__ void __launch_bounds__(NT, 1) kernel(
    const void* p_grad, const long long* p_idx, const float* p_scale, void* p_y, char* p_scratch, u64 o_count, u64 o_list,
    u64 o_item, u64 o_done, u64 o_rows, u64 o_seg, u64 o_part, u64 o_spill, u64 p_N, u64 p_V, u64 p_width, u64 p_length,
    u64 p_nch, u64 p_CH, u64 p_rowcap, u64 p_share, u64 p_zrows) {
  const Args a = {p_grad, p_idx, p_scale, p_y, p_scratch, o_count, o_list, o_item, o_done, o_rows, o_seg, o_part, o_spill,
                  (u32)p_N, (u32)p_V, (u32)p_width, (u32)p_length, (u32)p_nch, (u32)p_CH, (u32)p_rowcap, (u32)p_share,
                  (u32)p_zrows};
  extern __shared__ __align__(128) u32 sm[];
  uint4* zbuf = (uint4*)sm;
  u32* hk = sm + ZB / 4;
  u32* hc = hk + HS;
  u32* s_items = hc + HS;
  u32* s_row = s_items + CHMAX;
  u32* s_first = s_row + CHMAX;
  u32* s_n = s_first + CHMAX;
  u32* segs = s_n + CHMAX;
  __shared__ u32 cur, pcur, sng;
  __shared__ u64 wsum[2][32];
  __shared__ u64 base2[2];

  cg::grid_group grid = cg::this_grid();
  const u32 tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, G = gridDim.x, cta = blockIdx.x;
  typedef Vec<T, V> W;
  const T* grad = (const T*)a.grad;
  T* y = (T*)a.y;
  u64* cursors = (u64*)a.scratch;
  u32* count = (u32*)(a.scratch + a.o_count);
  u32* list = (u32*)(a.scratch + a.o_list);
  uint4* itemA = (uint4*)(a.scratch + a.o_item);
  u32* done = (u32*)(a.scratch + a.o_done);
  uint4* rows = (uint4*)(a.scratch + a.o_rows);
  float* segsum = (float*)(a.scratch + a.o_seg);
  T* part = (T*)(a.scratch + a.o_part);
  u32* spill = (u32*)(a.scratch + a.o_spill);
  const u32 width = a.width, nvec = width / V, ntile = (nvec + L - 1) / L;
  const bool single = a.nch <= G;
  const u32 lo = min((u64)a.V, (u64)cta * a.share), hi = min((u64)a.V, (u64)lo + a.share);

  PROFILE(0)
  // ---- zero counters of this CTA's share; zero the output in the background
  {
    uint4 z = make_uint4(0, 0, 0, 0);
    for (u64 v = (u64)lo + tid * 4; v < hi; v += NT * 4) *(uint4*)(count + v) = z;  // padded to a multiple of 4
    if (cta == 0 && tid < 2) cursors[tid] = 0;
  }
  auto tok = grid.barrier_arrive();

  {
    for (u32 i = tid; i < ZB / 16; i += NT) zbuf[i] = make_uint4(0, 0, 0, 0);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  // rows below zrows are all set to 0 by bulk copies in the background
  auto bulk_zero = [&]() {
      u64 bytes = (u64)a.zrows * width * sizeof(T);
      u32 zs = (u32)__cvta_generic_to_shared(zbuf);
      u64 np = (bytes + ZB - 1) / ZB;
      for (u64 p = cta + (u64)lane * G; p < np; p += (u64)G * 32) {
        u64 left = bytes - p * ZB;
        u32 sz = left < ZB ? (u32)left & ~15u : ZB;
        if (sz)
          asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"((char*)y + p * ZB), "r"(zs), "r"(sz) : "memory");
        if (left < ZB)
          for (u64 b = p * ZB + sz; b < bytes; b += sizeof(T)) fromf(*(T*)((char*)y + b), 0.f);
      }
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  };
  // ---- local grouping
  auto make_partials = [&](u32 c, const u32* items) {
    u32 ns = min(pcur, (u32)MAXSEG);
    for (u32 s = warp; s < ns * ntile; s += NT / 32) {
      u32 q = s / ntile, tile = s - q * ntile;
      u32 sg = segs[q];
      u32 n = sg >> 16;
      if (n == 0) continue;
      u32 e = lane < n ? items[(sg & 0xffff) + lane] : 0;
      u32 vc = tile * L + (lane & (L - 1));
      bool ok = vc < nvec;
      float acc[V];
      warp_rows<T, V, L>(acc, grad, part, e, n, vc * V, ok, width);
      if (ok && lane < L) {
        T* p = part + ((size_t)c * MAXSEG + q) * Tr<T>::pr * width + vc * V;
        if (Tr<T>::pr == 1) W::store(p, acc, 1.f);
        else W::split(p, p + width, acc);
      }
    }
  };

  u32 ng = 0;
  for (u32 c = cta; c < a.nch; c += G) {
    __syncthreads();
    for (u32 i = tid; i < HS / 4; i += NT) {
      ((uint4*)hk)[i] = make_uint4(FULL, FULL, FULL, FULL);
      ((uint4*)hc)[i] = make_uint4(0, 0, 0, 0);
    }
    if (tid < MAXSEG) segs[tid] = 0;
    if (tid == 0) { cur = 0; pcur = 0; }
    u64 j0 = (u64)c * a.CH;
    u32 m = j0 < a.N ? (u32)min((u64)a.CH, a.N - j0) : 0;
    u32 key[2], slot[2], rk[2];
#pragma unroll
    for (int q = 0; q < 2; q++) {
      u32 i = tid + q * NT;
      key[q] = i < m ? (u32)a.idx[j0 + i] : FULL;
    }
    __syncthreads();
    if (c == cta && warp == 31) bulk_zero();
#pragma unroll
    for (int q = 0; q < 2; q++) {
      u32 i = tid + q * NT;
      if (i < m) {
        u32 h = (key[q] * 2654435761u) >> 20;
        while (true) {
          u32 k = ((volatile u32*)hk)[h];
          if (k == key[q]) break;
          if (k == FULL) {
            k = atomicCAS(hk + h, FULL, key[q]);
            if (k == FULL || k == key[q]) break;
          }
          h = (h + 1) & (HS - 1);
        }
        slot[q] = h;
        rk[q] = atomicAdd(hc + h, 1);
      }
    }
    __syncthreads();
    u32* g_items = single ? s_items : spill + (size_t)c * (CHMAX * 5 + 4);
    u32* g_row = single ? s_row : g_items + CHMAX;
    u32* g_first = single ? s_first : g_items + 2 * CHMAX;
    u32* g_n = single ? s_n : g_items + 3 * CHMAX;
#pragma unroll
    for (int q = 0; q < HS / NT; q++) {
      u32 s = tid + q * NT;
      u32 k = hk[s], n = hc[s];
      u32 p = k != FULL ? n | 0x10000u : 0, x = p;
#pragma unroll
      for (int o = 1; o < 32; o <<= 1) {
        u32 t = __shfl_up_sync(FULL, x, o);
        if (lane >= o) x += t;
      }
      u32 b = 0;
      if (lane == 31) b = atomicAdd(&cur, x);
      b = __shfl_sync(FULL, b, 31) + x - p;
      if (k != FULL) {
        u32 lb = b & 0xffff, g = b >> 16;
        hc[s] = lb;
        u32 first = lb, ne = n;
        if (n >= Tr<T>::hot) {
          u32 nseg = (n + SEG - 1) / SEG;
          u32 pp = atomicAdd(&pcur, nseg);
          if (pp + nseg <= MAXSEG) {
            for (u32 t = 0; t < nseg; t++) segs[pp + t] = (lb + t * SEG) | (min((u32)SEG, n - t * SEG) << 16);
            ne = nseg * Tr<T>::pr;
            first = HOTBIT | ((c * MAXSEG + pp) * Tr<T>::pr);
          }
        }
        g_row[g] = k;
        g_first[g] = first;
        g_n[g] = ne;
      }
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 2; q++) {
      u32 i = tid + q * NT;
      if (i < m) g_items[hc[slot[q]] + rk[q]] = (u32)(j0 + i) / a.length;
    }
    ng = cur >> 16;
    __syncthreads();
    if (!single) {
      if (tid == 0) g_items[5 * CHMAX] = ng;
      make_partials(c, g_items);
    }
  }
  if (cta >= a.nch) {  // this CTA has no chunk
    __syncthreads();
    if (warp == 31) bulk_zero();
  }
  PROFILE(1)
  grid.barrier_wait(static_cast<cg::grid_group::arrival_token&&>(tok));
  PROFILE(2)

  // ---- count list entries of each row
  for (u32 c = cta; c < a.nch; c += G) {
    u32* g_items = single ? s_items : spill + (size_t)c * (CHMAX * 5 + 4);
    u32* g_row = single ? s_row : g_items + CHMAX;
    u32* g_n = single ? s_n : g_items + 3 * CHMAX;
    u32* g_rank = single ? hk : g_items + 4 * CHMAX;
    u32 n = single ? ng : g_items[5 * CHMAX];
    for (u32 g = tid; g < n; g += NT) g_rank[g] = atomicAdd(count + g_row[g], g_n[g]);
  }
  auto tok2 = grid.barrier_arrive();
  if (single && cta < a.nch) make_partials(cta, s_items);
  PROFILE(3)
  grid.barrier_wait(static_cast<cg::grid_group::arrival_token&&>(tok2));
  PROFILE(4)

  // ---- places of the rows' lists, and the work items
  {
    constexpr u32 SH = L == 32 ? 0 : SHORT;
    u64 x0 = 0, x1 = 0;  // entries | items A, rows B | rows C
    for (u64 v = (u64)lo + tid * 4; v < hi; v += NT * 4) {
      uint4 c4 = __ldcg((const uint4*)(count + v));
      u32 cc[4] = {c4.x, c4.y, c4.z, c4.w};
#pragma unroll
      for (int i = 0; i < 4; i++) {
        u32 n = cc[i];
        if (n && v + i < hi) {
          x0 += (u64)n << 32;
          if (n > SEG) x0 += (n + SEG - 1) / SEG;
          else if (n > SH) x1 += 1ull << 32;
          else x1 += 1;
        }
      }
    }
    u64 i0 = x0, i1 = x1;
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      u64 t0 = __shfl_up_sync(FULL, i0, o), t1 = __shfl_up_sync(FULL, i1, o);
      if (lane >= o) { i0 += t0; i1 += t1; }
    }
    if (lane == 31) { wsum[0][warp] = i0; wsum[1][warp] = i1; }
    __syncthreads();
    if (warp < 2) {
      u64 w = wsum[warp][lane], z = w;
#pragma unroll
      for (int o = 1; o < 32; o <<= 1) {
        u64 t = __shfl_up_sync(FULL, z, o);
        if (lane >= o) z += t;
      }
      wsum[warp][lane] = z - w;
      if (lane == 31) base2[warp] = z ? atomicAdd(cursors + warp, z) : 0;
    }
    __syncthreads();
    u64 b0 = base2[0] + wsum[0][warp] + i0 - x0, b1 = base2[1] + wsum[1][warp] + i1 - x1;
    u32 pe = b0 >> 32, pa = (u32)b0, pb = b1 >> 32, pc = (u32)b1;
    for (u64 v = (u64)lo + tid * 4; v < hi; v += NT * 4) {
      uint4 c4 = __ldcg((const uint4*)(count + v));
      u32 cc[4] = {c4.x, c4.y, c4.z, c4.w};
#pragma unroll
      for (int i = 0; i < 4; i++) {
        u32 n = cc[i];
        if (n && v + i < hi) {
          u32 row = (u32)v + i;
          if (n > SEG) {
            u32 k = (n + SEG - 1) / SEG;
            for (u32 s = 0; s < k; s++) itemA[pa + s] = make_uint4(row, pe, n, s);
            for (u32 t = 0; t < ntile; t++) done[(size_t)pa * ntile + t] = 0;
            pa += k;
          } else if (n > SH) rows[pb++] = make_uint4(row, pe, n, 0);
          else rows[a.rowcap - 1 - pc++] = make_uint4(row, pe, n, 0);
          count[row] = pe + 1;
          pe += n;
        }
      }
    }
  }
  grid.sync();

  PROFILE(5)
  // ---- fill the lists
  for (u32 c = cta; c < a.nch; c += G) {
    u32* g_items = single ? s_items : spill + (size_t)c * (CHMAX * 5 + 4);
    u32* g_row = single ? s_row : g_items + CHMAX;
    u32* g_first = single ? s_first : g_items + 2 * CHMAX;
    u32* g_n = single ? s_n : g_items + 3 * CHMAX;
    u32* g_rank = single ? hk : g_items + 4 * CHMAX;
    u32 n = single ? ng : g_items[5 * CHMAX];
    for (u32 g = tid; g < n; g += NT) {
      u32 p = __ldcg(count + g_row[g]) - 1 + g_rank[g], f = g_first[g], k = g_n[g];
      if (f & HOTBIT)
        for (u32 i = 0; i < k; i++) list[p + i] = f + i;
      else
        for (u32 i = 0; i < k; i++) list[p + i] = g_items[f + i];
    }
  }
  if (warp == 31) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  grid.sync();

  PROFILE(6)
  // ---- the other rows without a hit become 0
  for (u64 r0 = a.zrows + ((u64)warp * G + cta) * 32; r0 < a.V; r0 += (u64)G * NT) {
    u32 m = min((u64)32, a.V - r0);
    u32 empty = __ballot_sync(FULL, lane < m && count[r0 + lane] == 0);
    typename W::raw_t* p = (typename W::raw_t*)(y + r0 * width);
    if (nvec <= 32) {
      for (u32 i = lane; i < m * nvec; i += 32)
        if (empty >> (i / nvec) & 1) p[i] = Raw<V * sizeof(T)>::zero();
    } else {
      for (u32 r = 0; r < m; r++)
        if (empty >> r & 1)
          for (u32 i = lane; i < nvec; i += 32) p[(size_t)r * nvec + i] = Raw<V * sizeof(T)>::zero();
    }
  }

  // ---- gather
  {
    constexpr u32 R = 32 / L;
    u64 q0 = __ldcg(cursors), q1 = __ldcg(cursors + 1);
    u64 nA = (u64)(u32)q0 * ntile, nB = (u64)(u32)(q1 >> 32) * ntile, nC = (u32)q1;
    u64 nAB = nA + nB, total = nAB + (nC + R - 1) / R;
    u32 sub = lane / L, l = lane & (L - 1);
    for (u64 w = (u64)warp * G + cta; w < total; w += (u64)G * (NT / 32)) {
      if (w < nAB) {
        bool isA = w < nA;
        u32 t = (u32)(isA ? w : w - nA);
        u32 q = t / ntile, tile = t - q * ntile;
        uint4 it = isA ? itemA[q] : rows[q];
        u32 s = it.w, n = min((u32)SEG, it.z - s * SEG);
        u32 e = lane < n ? list[it.y + s * SEG + lane] : 0;
        float sc = a.scale[it.x];
        u32 vc = tile * L + l;
        bool ok = vc < nvec;
        float acc[V];
        warp_rows<T, V, L>(acc, grad, part, e, n, vc * V, ok, width);
        if (isA) {
          u32 nseg = (it.z + SEG - 1) / SEG, q0 = q - s;
          if (ok && lane < L)
#pragma unroll
            for (int i = 0; i < V; i++) __stcg(segsum + (size_t)q * width + vc * V + i, acc[i]);
          __threadfence();
          __syncwarp();
          u32 d = 0;
          if (lane == 0) d = atomicAdd(done + (size_t)q0 * ntile + tile, 1);
          d = __shfl_sync(FULL, d, 0);
          if (d != nseg - 1) continue;
          __threadfence();
#pragma unroll
          for (int i = 0; i < V; i++) acc[i] = 0.f;
          if (ok) {
#pragma unroll 4
            for (u32 k = sub; k < nseg; k += R)
#pragma unroll
              for (int i = 0; i < V; i++) acc[i] += __ldcg(segsum + (size_t)(q0 + k) * width + vc * V + i);
          }
#pragma unroll
          for (int o = L; o < 32; o <<= 1)
#pragma unroll
            for (int i = 0; i < V; i++) acc[i] += __shfl_xor_sync(FULL, acc[i], o);
        }
        if (ok && lane < L) W::store(y + (size_t)it.x * width + vc * V, acc, sc);
      } else {
        u64 r = (w - nAB) * R + sub;
        if (r >= nC || l >= nvec) continue;
        uint4 it = rows[a.rowcap - 1 - r];
        u32 n = it.z;
        float sc = a.scale[it.x];
        u32 e[SHORT];
        typename W::raw_t x[SHORT];
#pragma unroll
        for (int u = 0; u < SHORT; u++) e[u] = u < n ? list[it.y + u] : 0;
#pragma unroll
        for (int u = 0; u < SHORT; u++) {
          x[u] = Raw<V * sizeof(T)>::zero();
          if (u < n) x[u] = *(const typename W::raw_t*)(rowptr(grad, (const T*)part, e[u], width) + l * V);
        }
        float acc[V];
#pragma unroll
        for (int i = 0; i < V; i++) acc[i] = 0.f;
#pragma unroll
        for (int u = 0; u < SHORT; u++) W::add(acc, x[u]);
        W::store(y + (size_t)it.x * width + l * V, acc, sc);
      }
    }
  }
#ifdef PROF
  __syncthreads();
#endif
  PROFILE(7)
}
"""
TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float32: "float", torch.float16: "__half"}
CHMAX, HS, MAXSEG, SEG, ZB, NT = 2048, 4096, 128, 32, 16384, 1024
SMEM = ZB + 4 * (2 * HS + 4 * CHMAX + MAXSEG)
ZBYTES = 1 << 40


@functools.cache
def compiled(name: str, device: int):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include,
                             define_macro=[(k, str(v)) for k, v in OPTS.items()] or None)
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if device >= 0:
        handle = kernel.handle if hasattr(kernel, "handle") else kernel._handle
        handle = driver.CUkernel(int(handle))
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (error,) = driver.cuKernelSetAttribute(attribute, SMEM, handle, driver.CUdevice(device))
        if int(error):
            raise RuntimeError(str(error))
    return kernel


@functools.cache
def processors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def plan(bags, length, vocabulary, width, size, grid):
    n = bags * length
    chunks = grid * max(1, -(-n // (grid * CHMAX)))
    per = max(32, -(-n // chunks))
    chunks = -(-n // per)
    vec = 16 // size
    while width % vec:
        vec //= 2
    lanes = 1
    while lanes < min(32, width // vec):
        lanes *= 2
    tiles = -(-(width // vec) // lanes)
    share = -(-(-(-vocabulary // grid)) // 4) * 4
    rowcap = max(1, min(vocabulary, n))
    items = n // (SEG // 2) + 1
    place, total = {}, 256
    pr = 1 if size == 4 else 2
    for key, count in (
        ("o_count", 4 * (share * grid + 4)), ("o_list", 4 * n), ("o_item", 16 * items), ("o_done", 4 * items * tiles),
        ("o_rows", 16 * rowcap), ("o_seg", 4 * items * width), ("o_part", chunks * MAXSEG * pr * width * size),
        ("o_spill", 4 * chunks * (5 * CHMAX + 4) if chunks > grid else 0),
    ):
        place[key] = total
        total += -(-count // 256) * 256
    zero = min(vocabulary, max(1, ZBYTES // (width * size)) // 16 * 16)
    return (tuple(place.values()) + (n, vocabulary, width, max(1, length), chunks, per, rowcap, share, zero)), total, vec, lanes


def run(grad, indices, scale):
    grad, indices, scale = grad.contiguous(), indices.contiguous(), scale.contiguous()
    bags, width = grad.shape
    length, vocabulary = indices.shape[1], scale.shape[0]
    y = torch.empty((vocabulary, width), dtype=grad.dtype, device=grad.device)
    if y.numel() == 0:
        return y
    size = grad.element_size()
    if grad.data_ptr() % 16:
        grad = grad.clone()
    device = grad.device.index
    grid = processors(device)
    numbers, total, vec, lanes = plan(bags, length, vocabulary, width, size, grid)
    scratch = torch.empty(total, dtype=torch.uint8, device=grad.device)
    kernel = compiled(f"kernel<{TYPES[grad.dtype]}, {vec}, {lanes}>", device)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    config = LaunchConfig(grid=(grid,), block=(NT,), shmem_size=SMEM, is_cooperative=True)
    pointers = (grad.data_ptr(), indices.data_ptr(), scale.data_ptr(), y.data_ptr(), scratch.data_ptr())
    launch(stream, config, kernel, *pointers, *numbers)
    return y
