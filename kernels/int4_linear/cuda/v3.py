"""Integer tensor cores for up to four tokens, and small blocks that share a multiprocessor for more than sixteen.

Hypothesis: the version before was right and ahead at every timed shape, and 3.2 times as slow at a drawn one with
many tokens: its blocks of 8 warps held a multiprocessor alone, and groups were fewer than warps. With at most four
warps and 168 registers a thread, three blocks or more share one, so each hides the others' waits. All else is as it
was: a nibble becomes an operand of the integer product by one AND, and x becomes four signed bytes under the largest
exponent of its group, so that sums of 128 are exact in int32.
Predicted: the times of the version before, 8.2 us at 1x11008x4096, 31.1 at 1x28672x8192, 12.8 at 4x14336x4096 and
9.7 at 16x4096x4096; at many tokens at least 0.6 of the best version. Metric: DRAM busy to 88 % at 1x28672x8192.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

__device__ __forceinline__ u32 smem_addr(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void copy16(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy8(u32 to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wait_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
__device__ __forceinline__ u32 nibbles(u32 v) {  // two values 128 + q in bf16
  u32 r;
  asm("lop3.b32 %0, %1, 0x000f000f, 0x43004300, 0xea;" : "=r"(r) : "r"(v));
  return r;
}
__device__ __forceinline__ void mma(float* d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ float low(u32 v) { return __uint_as_float(v << 16); }
// The larger of two magnitudes, as float32.
__device__ __forceinline__ u32 larger(u32 v) { return max((v << 16) & 0x7fff0000u, v & 0x7fff0000u); }
// 128 and the zero point of row r of eight.
__device__ __forceinline__ float point(u32 word, int r) { return low(0x4300u | ((word >> (4 * r)) & 15u)); }
__device__ __forceinline__ float high(u32 v) { return __uint_as_float(v & 0xffff0000u); }
__device__ __forceinline__ void imma(int* d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, const int* c) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
__device__ __forceinline__ uint4 load16(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}

// Few rows of x. A block takes the row tiles [lo, hi) of 16 outputs, its 16 warps share k, and a warp streams
// units of 16 outputs x 128 k through a private ring. x becomes fixed point of 31 bits under its group's exponent, in
// four signed bytes, each a column of the integer product: its sums are exact, before and after the zero point.
template <int MR, int S, int WK>
__global__ void __launch_bounds__(512, 1)
narrow(const u16* __restrict__ x, const u8* __restrict__ packed, const u16* __restrict__ scales,
       const u32* __restrict__ zeros, u16* __restrict__ y, int m, int n, int G, int tmax) {
  constexpr int NC = 4 * MR, NT = (NC + 7) / 8, XI = MR == 4 ? 4 : 3, WT = 16 / WK;
  constexpr int MAGIC = 0x4b400000;  // an integer added to it is that float plus the integer
  extern __shared__ __align__(128) u8 smem[];
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, r = lane >> 2, t = lane & 3;
  const int T = (n + 15) / 16;
  const int t_lo = (int)((long long)blockIdx.x * T / gridDim.x);
  const int t_hi = (int)((blockIdx.x + 1LL) * T / gridDim.x);
  const int rows = min(MR, m);
  const long long K = (long long)G * 128;

  u8* ring_base = smem;
  u8* xb = ring_base + 16 * S * 1024; // [group][pair of words][NC][4] of 16 bytes
  float2* tab = reinterpret_cast<float2*>(xb + G * (NC * 128));         // [group][NC]: weight of the column, -sum
  u16* sc = reinterpret_cast<u16*>(tab + G * NC);         // [tile row][G]
  u32* zw = reinterpret_cast<u32*>(sc + tmax * 16 * G);                  // [half of a tile][G]: eight rows a word
  float* part = reinterpret_cast<float*>(zw + tmax * 2 * G);            // [tile][WK][MR][16]

  const int chunks = MR * G * 16, per = G * 16;
  auto fetch = [&](int c) {
    uint4 v = make_uint4(0, 0, 0, 0);
    const int row = MR == 1 ? 0 : c / per;
    const u16* from = x + row * K + (long long)(c - row * per) * 8;
    if (c < chunks && row < rows) v = *reinterpret_cast<const uint4*>(from);
    return v;
  };
  uint4 held[XI];
#pragma unroll
  for (int i = 0; i < XI; ++i) held[i] = fetch(tid + i * 512);
  {
    const int span = min(tmax, t_hi - t_lo);
    const long long first = (long long)t_lo * 16 * G, first_z = (long long)t_lo * 2 * G;
    const int entries = (int)min((long long)span * 16 * G, (long long)n * G - first);
    const int words = (int)min((long long)span * 2 * G, (n + 7LL) / 8 * G - first_z);
    const u32 to_s = smem_addr(sc), to_z = smem_addr(zw);
    for (int i = tid; i * 8 < entries; i += 512) {
      if (entries - i * 8 >= 8) {
        copy16(to_s + i * 16, scales + first + i * 8);
      } else {  // memcheck takes a partial asynchronous copy for a whole one
        for (int j = i * 8; j < i * 8 + 8; ++j) sc[j] = j < entries ? scales[first + j] : u16(0);
      }
    }
    for (int i = tid; i * 2 < words; i += 512) {
      if (words - i * 2 >= 2) {
        copy8(to_z + i * 8, zeros + first_z + i * 2);
      } else {
        zw[i * 2] = zeros[first_z + i * 2];
        zw[i * 2 + 1] = 0;
      }
    }
  }
  commit();

  const int kp = warp % WK, tp = warp / WK;
  const int ga = kp * G / WK, gb = (kp + 1) * G / WK;
  const u32 ring = smem_addr(ring_base + warp * S * 1024) + lane * 16, ring_end = ring + S * 1024;
  const long long pitch = (long long)G * 64;
  const int step0 = 64 * (gb - ga);
  int it = ga < gb ? t_lo + tp : t_hi, left_g = gb - ga;
  u32 to = ring;
  const u8 *p0, *p1;
  auto rows_of = [&]() {
    const int row = it * 16 + r;
    p0 = packed + min(row, n - 1) * pitch + t * 16 + ga * 64;
    p1 = packed + min(row + 8, n - 1) * pitch + t * 16 + ga * 64;
  };
  auto issue = [&]() {
    if (it < t_hi) {
      copy16(to, p0);
      copy16(to + 512, p1);
      to += 1024;
      if (to == ring_end) to = ring;
      p0 += 64, p1 += 64;
      if (--left_g == 0) {
        left_g = gb - ga;
        it += WT;
        rows_of();
      }
    }
    commit();
  };
  rows_of();
#pragma unroll 1
  for (int i = 0; i < S; ++i) issue();

  auto put = [&](int c, uint4 v) {
    u32 top = max(max(larger(v.x), larger(v.y)), max(larger(v.z), larger(v.w)));
#pragma unroll
    for (int d = 8; d; d /= 2) top = max(top, __shfl_xor_sync(~0u, top, d));
    const u32 e = max(top >> 23, 32u);                          // the group's largest exponent, biased
    const float up = __uint_as_float((283 - e) << 23);          // below 2^30 in magnitude then
    const float value[8] = {low(v.x), high(v.x), low(v.y), high(v.y), low(v.z), high(v.z), low(v.w), high(v.w)};
    u32 limbs[8];  // four signed bytes, the last the highest
#pragma unroll
    for (int i = 0; i < 8; ++i) limbs[i] = ((u32)__float2int_rn(value[i] * up) + 0x80808080u) ^ 0x80808080u;
    uint2 bytes[4];  // of k 0, 2, 4, 6 and 1, 3, 5, 7; the highest first
    int sums[2] = {0, 0};
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      const u32 pick = 0x0073u - 0x11u * l;
      u32 pairs[4];  // of k 0 and 2, 1 and 3, 4 and 6, 5 and 7
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int first = i / 2 * 4 + i % 2;
        pairs[i] = __byte_perm(limbs[first], limbs[first + 2], pick);
      }
      bytes[l] = make_uint2(__byte_perm(pairs[0], pairs[2], 0x5410), __byte_perm(pairs[1], pairs[3], 0x5410));
      const int sum = __dp4a((int)bytes[l].x, 0x01010101, __dp4a((int)bytes[l].y, 0x01010101, 0));
      sums[l / 2] += l % 2 ? sum * 65536 : sum;  // two in one register: a group's sum has at most 15 bits
    }
#pragma unroll
    for (int d = 8; d; d /= 2) {
      sums[0] += __shfl_xor_sync(~0u, sums[0], d);
      sums[1] += __shfl_xor_sync(~0u, sums[1], d);
    }
    if (c < chunks) {
      const int row = MR == 1 ? 0 : c / per, at = c - row * per;
      const int g = at >> 4, word = at & 3, quarter = (at >> 2) & 3;
      const float down = __uint_as_float((e - 29) << 23);
#pragma unroll
      for (int l = 0; l < 4; ++l) {  // column l * MR + row; l 0 is the highest byte
        u8* place = xb + (((g * 2 + (word >> 1)) * NC + l * MR + row) * 4 + quarter) * 16 + (word & 1) * 8;
        *reinterpret_cast<uint2*>(place) = bytes[l];
        const int even = (int)(short)(sums[l / 2] & 0xffff), sum = l % 2 ? (sums[l / 2] - even) >> 16 : even;
        const float weight = down * (float)(1 << (24 - 8 * l));
        if ((at & 15) == l) tab[g * NC + l * MR + row] = make_float2(weight, -weight * (float)sum);
      }
    }
  };
#pragma unroll
  for (int i = 0; i < XI; ++i)
    if (i * 512 < chunks) put(tid + i * 512, held[i]);
#pragma unroll 1
  for (int base = XI * 512; base < chunks; base += 512) put(base + tid, fetch(base + tid));
  wait_but<S>();
  __syncthreads();

  const int bias[4] = {MAGIC, MAGIC, MAGIC, MAGIC};
  int tile = t_lo + tp;
  const u8* at = ring_base + warp * S * 1024 + lane * 16;
  const u8* at_end = at + S * 1024;
  for (int base = t_lo; base < t_hi; base += tmax) {
    const int end = min(base + tmax, t_hi);
    if (base != t_lo) {
      const long long first = (long long)base * 16 * G, first_z = (long long)base * 2 * G;
      const int entries = (int)min((long long)(end - base) * 16 * G, (long long)n * G - first);
      const int words = (int)min((long long)(end - base) * 2 * G, (n + 7LL) / 8 * G - first_z);
#pragma unroll 1
      for (int i = tid; i < entries; i += 512) sc[i] = scales[first + i];
#pragma unroll 1
      for (int i = tid; i < words; i += 512) zw[i] = zeros[first_z + i];
      __syncthreads();
    }
    for (; tile < end; tile += WT) {
      float out[NT][4];
#pragma unroll
      for (int i = 0; i < NT; ++i) out[i][0] = out[i][1] = out[i][2] = out[i][3] = 0.f;
      const int first = ((tile - base) * 16 + r) * G;
      const u16 *s_at = sc + first + ga, *s_at8 = s_at + 8 * G;
      const u32 *z_at = zw + (tile - base) * 2 * G + ga, *z_at8 = z_at + G;
      const u8* b_at = xb + ga * (NC * 128) + lane * 16;
      const float4* t_at = reinterpret_cast<const float4*>(tab + ga * NC + 2 * t);
#pragma unroll 1
      for (int g = ga; g < gb; ++g) {
        wait_but<S - 1>();
        const uint4 A = *reinterpret_cast<const uint4*>(at), B = *reinterpret_cast<const uint4*>(at + 512);
        uint4 b[NT][2];
        float4 w[NT];
#pragma unroll
        for (int i = 0; i < NT; ++i) {
          b[i][0] = b[i][1] = make_uint4(0, 0, 0, 0);
          w[i] = make_float4(0, 0, 0, 0);
          if (i * 8 + r < NC) {
            b[i][0] = *reinterpret_cast<const uint4*>(b_at + i * 512);
            b[i][1] = *reinterpret_cast<const uint4*>(b_at + i * 512 + NC * 64);
          }
          if (i * 8 + 2 * t < NC) w[i] = t_at[i * 4];
        }
        const float s0 = low(*s_at), s1 = low(*s_at8);
        const float z0 = point(*z_at, r) - 128.f, z1 = point(*z_at8, r) - 128.f;
        ++s_at, ++s_at8, ++z_at, ++z_at8, b_at += NC * 128, t_at += NC / 2;
        const u32 aw[4] = {A.x, A.y, A.z, A.w}, bw[4] = {B.x, B.y, B.z, B.w};
        int acc[NT][4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const u32 a0 = aw[j] & 0x0f0f0f0fu, a2 = (aw[j] >> 4) & 0x0f0f0f0fu;
          const u32 a1 = bw[j] & 0x0f0f0f0fu, a3 = (bw[j] >> 4) & 0x0f0f0f0fu;
#pragma unroll
          for (int i = 0; i < NT; ++i) {
            const uint4 v = b[i][j / 2];
            imma(acc[i], a0, a1, a2, a3, j % 2 ? v.z : v.x, j % 2 ? v.w : v.y, j ? acc[i] : bias);
          }
        }
        issue();
        at += 1024;
        if (at == at_end) at -= S * 1024;
#pragma unroll
        for (int i = 0; i < NT; ++i) {
          const float v0 = __int_as_float(acc[i][0]) - 12582912.f, v1 = __int_as_float(acc[i][1]) - 12582912.f;
          const float v2 = __int_as_float(acc[i][2]) - 12582912.f, v3 = __int_as_float(acc[i][3]) - 12582912.f;
          out[i][0] += s0 * (v0 * w[i].x + z0 * w[i].y);
          out[i][1] += s0 * (v1 * w[i].z + z0 * w[i].w);
          out[i][2] += s1 * (v2 * w[i].x + z1 * w[i].y);
          out[i][3] += s1 * (v3 * w[i].z + z1 * w[i].w);
        }
      }
      float* to_part = part + ((tile - base) * WK + kp) * 16 * MR + r;
      if (MR == 1) {
        float a = out[0][0] + out[0][1], b = out[0][2] + out[0][3];
        a += __shfl_xor_sync(~0u, a, 1), b += __shfl_xor_sync(~0u, b, 1);
        if (t == 0) to_part[0] = a, to_part[8] = b;
      } else {
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          v[j] = out[0][j] + (NT == 2 ? out[NT - 1][j] : 0.f);
          v[j] += __shfl_xor_sync(~0u, v[j], 2);
          if (MR == 2) v[j] += __shfl_xor_sync(~0u, v[j], 1);
        }
        if (2 * t < MR)
          to_part[32 * t] = v[0], to_part[32 * t + 16] = v[1],
          to_part[32 * t + 8] = v[2], to_part[32 * t + 24] = v[3];
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int e = tid; e < (end - base) * 16 * MR; e += 512) {
      const int tl = e / (16 * MR), in = e % (16 * MR), col = in >> 4, row = (base + tl) * 16 + (in & 15);
      float sum = 0.f;
#pragma unroll
      for (int w = 0; w < WK; ++w) sum += part[(tl * WK + w) * 16 * MR + in];
      if (row < n && col < rows) {
        u16 h;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(sum));
        y[(long long)col * n + row] = h;
      }
    }
    if (end < t_hi) __syncthreads();
  }
}

// More rows of x, or a k too large for narrow: a block takes 32 outputs, its warps share k, and x comes from L2
// as fragments. BLOCKS of them fit a multiprocessor.
template <int MT, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS)
wide(const u16* __restrict__ x, const u8* __restrict__ packed, const u16* __restrict__ scales,
     const u32* __restrict__ zeros, u16* __restrict__ y, int m, int n, int G, int unused) {
  constexpr int MR = 8 * MT;
  __shared__ float part[WARPS][2][MR][17];
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, r = lane >> 2, t = lane & 3;
  const int tiles = (m + MR - 1) / MR, m0 = blockIdx.x % tiles * MR, n0 = blockIdx.x / tiles * 32;
  const long long K = (long long)G * 128, pitch = (long long)G * 64;
  const int ga = warp * G / WARPS, gb = (warp + 1) * G / WARPS;
  long long line[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) line[i] = min(n0 + i * 8 + r, n - 1);
  const u16* from[MT];
  bool there[MT];
#pragma unroll
  for (int i = 0; i < MT; ++i) {
    there[i] = m0 + i * 8 + r < m;
    from[i] = x + (there[i] ? m0 + i * 8 + r : 0) * K + t * 32;
  }
  float out[2][MT][4];
#pragma unroll
  for (int i = 0; i < 2 * MT; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) out[i / MT][i % MT][j] = 0.f;

  auto weights = [&](int g, uint4* q, float* s, float* z) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      q[i] = load16(packed + line[i] * pitch + g * 64 + t * 16);
      s[i] = low(__ldg(scales + line[i] * G + g));
      z[i] = point(__ldg(zeros + line[i] / 8 * G + g), (int)(line[i] % 8));
    }
  };
  uint4 next[4];
  float next_s[4], next_z[4];
  if (ga < gb) weights(ga, next, next_s, next_z);
#pragma unroll 1
  for (int g = ga; g < gb; ++g) {
    uint4 q[4];
    float s[4], z[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) q[i] = next[i], s[i] = next_s[i], z[i] = next_z[i];
    if (g + 1 < gb) weights(g + 1, next, next_s, next_z);
    float acc[2][MT][4], sum[MT][4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int i = 0; i < MT; ++i) acc[0][i][j] = acc[1][i][j] = sum[i][j] = 0.f;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      u32 a[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u32 word = w == 0 ? q[i].x : w == 1 ? q[i].y : w == 2 ? q[i].z : q[i].w;
        a[i][0] = nibbles(word), a[i][1] = nibbles(word >> 4);
        a[i][2] = nibbles(word >> 8), a[i][3] = nibbles(word >> 12);
      }
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        uint4 u = make_uint4(0, 0, 0, 0);
        if (there[i]) u = __ldg(reinterpret_cast<const uint4*>(from[i] + (long long)g * 128 + w * 8));
        const u32 b0 = __byte_perm(u.x, u.z, 0x5410), b1 = __byte_perm(u.x, u.z, 0x7632);
        const u32 b2 = __byte_perm(u.y, u.w, 0x5410), b3 = __byte_perm(u.y, u.w, 0x7632);
        const u32 one = 0x3f803f80u;
        mma(sum[i], one, one, one, one, b0, b1);
        mma(acc[0][i], a[0][0], a[1][0], a[0][1], a[1][1], b0, b1);
        mma(acc[1][i], a[2][0], a[3][0], a[2][1], a[3][1], b0, b1);
        mma(sum[i], one, one, one, one, b2, b3);
        mma(acc[0][i], a[0][2], a[1][2], a[0][3], a[1][3], b2, b3);
        mma(acc[1][i], a[2][2], a[3][2], a[2][3], a[3][3], b2, b3);
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          out[h][i][j] += s[2 * h + j / 2] * (acc[h][i][j] - z[2 * h + j / 2] * sum[i][j]);
  }
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) part[warp][h][i * 8 + 2 * t + j % 2][r + 8 * (j / 2)] = out[h][i][j];
  __syncthreads();
  for (int e = tid; e < 32 * MR; e += 32 * WARPS) {
    const int in = e & 15, h = (e >> 4) & 1, col = e >> 5, row = n0 + h * 16 + in;
    float total = 0.f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) total += part[w][h][col][in];
    if (row < n && m0 + col < m) {
      u16 b;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(total));
      y[(long long)(m0 + col) * n + row] = b;
    }
  }
}
"""
SHARED_MAX = 227 * 1024
"""Bytes of shared memory a block may have."""
DEPTH = 4
"""Stages of a warp's ring."""
SHARE = 8
"""Warps of a row tile, between which k is divided: a divisor of 16."""
NARROW = 4
"""Tokens that the integer product takes at most."""
MANY = 16
"""Tokens beyond which several small blocks share a multiprocessor, to hide each other's waits."""


@functools.cache
def compiled(name: str):
    kernel = (
        Program(SOURCE, "c++", ProgramOptions(arch="sm_90a", std="c++17"))
        .compile("cubin", name_expressions=(name,))
        .get_kernel(name)
    )
    if name.startswith("narrow"):
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        status, *_ = driver.cuKernelSetAttribute(limit, SHARED_MAX, kernel.handle, 0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{name}: {status}")
    return kernel


@functools.cache
def plan(tokens: int, features: int, groups: int, device: torch.device):
    """The kernel, its launch, and the row tiles whose scales are in shared memory at once."""
    early = {"programmatic_stream_serialization": True}
    if tokens <= NARROW:
        few = 4 if tokens > 2 else tokens
        tiles = -(-features // 16)
        blocks = min(tiles, torch.cuda.get_device_properties(device).multi_processor_count)
        fixed = 16 * DEPTH * 1024 + groups * few * 4 * (128 + 8)
        tile = 40 * groups + 64 * SHARE * few
        most = min((SHARED_MAX - fixed) // tile, -(-tiles // blocks))
        if most >= 1:
            config = LaunchConfig(grid=(blocks,), block=(512,), shmem_size=fixed + most * tile, **early)
            return compiled(f"narrow<{few}, {DEPTH}, {SHARE}>"), config, most
    rows = 16 if tokens > 8 else 8
    blocks = -(-tokens // rows) * -(-features // 32)
    warps, resident = (16, 1) if rows == 8 else (8, 1)
    if tokens > MANY:
        warps = min(4, 1 << max(groups - 1, 0).bit_length())
        resident = 12 // warps
    config = LaunchConfig(grid=(blocks,), block=(32 * warps,), **early)
    return compiled(f"wide<{rows // 8}, {warps}, {resident}>"), config, 0


def run(x, packed, scales, zeros):
    tokens, (features, groups) = x.shape[0], scales.shape
    y = torch.empty((tokens, features), dtype=x.dtype, device=x.device)
    kernel, config, most = plan(tokens, features, groups, x.device)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    pointers = [t.data_ptr() for t in (x, packed, scales, zeros, y)]
    size = [numpy.int32(each) for each in (tokens, features, groups, most)]
    launch(stream, config, kernel, *pointers, *size)
    return y
