// y[n] = sum_k x[k] (q[n, k] - 8) scale[n, k / 128], m = 1. A block has 8 warps and 16 rows.
// q: eight nibbles a word, value 8 i + j in bits 4 j of word i. Grid n / 16. k is a multiple of 128, at most 16384.
#include "bits.h"
#define K_MOST 16384
template <bool MAGIC> DEV void scalar_gemv(const uint4* q, const float* scale, const uint4* x, float* y, int k) {
  extern __shared__ uint4 xs[];                            // 64 bytes of x, then 16 of padding: no bank conflict
  int t = threadIdx.x, lane = t % 32, row = blockIdx.x * 16 + t / 32 * 2, words = k / 32;
  for (int i = t; i < k / 8; i += 256) xs[i / 4 * 5 + i % 4] = x[i];
  __syncthreads();
  float acc[2] = {0, 0};
  #pragma unroll 4
  for (int c = lane; c < words; c += 32) {
    u32 pairs[16];
    for (int j = 0; j < 4; ++j) { uint4 v = xs[c * 5 + j]; pairs[4 * j] = v.x; pairs[4 * j + 1] = v.y; pairs[4 * j + 2] = v.z; pairs[4 * j + 3] = v.w; }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint4 v = q[(long long)(row + r) * words + c];
      u32 w[4] = {v.x, v.y, v.z, v.w};
      float s = 0;
      #pragma unroll
      for (int j = 0; j < 4; ++j)
        #pragma unroll
        for (int p = 0; p < 4; ++p) {
          if (MAGIC) {                                     // nibbles p and p + 4 become 128 + v in bf16
            u32 h;
            asm("lop3.b32 %0, %1, 0x000f000f, 0x43004300, 0xea;" : "=r"(h) : "r"(w[j] >> (4 * p)));
            asm("sub.rn.bf16x2 %0, %0, %1;" : "+r"(h) : "r"(0x43084308u));
            u32 a = pairs[4 * j + p / 2], b = pairs[4 * j + 2 + p / 2];
            s += low(h) * (p % 2 ? high(a) : low(a)) + high(h) * (p % 2 ? high(b) : low(b));
          } else {
            u32 a = pairs[4 * j + p];
            s += (float)((int)((w[j] >> (8 * p)) & 15) - 8) * low(a);
            s += (float)((int)((w[j] >> (8 * p + 4)) & 15) - 8) * high(a);
          }
        }
      acc[r] += s * scale[(row + r) * (k / 128) + c / 4];
    }
  }
  for (int r = 0; r < 2; ++r) { float s = warp_sum(acc[r]); if (lane == 0) y[row + r] = s; }
}
extern "C" __global__ void __launch_bounds__(256) int4_shift(const uint4* q, const float* scale, const uint4* x, float* y, int k) { scalar_gemv<false>(q, scale, x, y, k); }
extern "C" __global__ void __launch_bounds__(256) int4_magic(const uint4* q, const float* scale, const uint4* x, float* y, int k) { scalar_gemv<true>(q, scale, x, y, k); }

// The rows of weights are M of m16n8k16; lane 4 g + t holds 32 values of rows g and g + 8 in each group of 128.
extern "C" __global__ void __launch_bounds__(256) int4_tensor(const uint4* q, const float* scale, const unsigned short* x, float* y, int k) {
  extern __shared__ uint4 store[];                         // [k / 128][4 words][4 lanes] of b0 b1 b0' b1'
  __shared__ float part[8][16];
  int t = threadIdx.x, warp = t / 32, lane = t % 32, g = lane / 4, c = lane % 4, row = blockIdx.x * 16 + g;
  for (int i = t; i < k / 8; i += 256) {                   // word i: nibbles (0, 4), (1, 5), (2, 6), (3, 7)
    uint4 v = ((const uint4*)x)[i];
    store[(i / 16 * 4 + i % 4) * 4 + i / 4 % 4] = make_uint4(__byte_perm(v.x, v.z, 0x5410), __byte_perm(v.x, v.z, 0x7632),
                                                             __byte_perm(v.y, v.w, 0x5410), __byte_perm(v.y, v.w, 0x7632));
  }
  __syncthreads();
  float total[2] = {0, 0};
  #pragma unroll 4
  for (int group = warp; group < k / 128; group += 8) {
    uint4 v0 = q[(long long)row * (k / 32) + group * 4 + c], v1 = q[(long long)(row + 8) * (k / 32) + group * 4 + c];
    u32 w0[4] = {v0.x, v0.y, v0.z, v0.w}, w1[4] = {v1.x, v1.y, v1.z, v1.w};
    float acc[4] = {0, 0, 0, 0};
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      uint4 b = g == 0 ? store[(group * 4 + j) * 4 + c] : make_uint4(0, 0, 0, 0);    // column 0 alone
      u32 a[2][4];
      #pragma unroll
      for (int p = 0; p < 4; ++p)
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
          asm("lop3.b32 %0, %1, 0x000f000f, 0x43004300, 0xea;" : "=r"(a[r][p]) : "r"((r ? w1[j] : w0[j]) >> (4 * p)));
          asm("sub.rn.bf16x2 %0, %0, %1;" : "+r"(a[r][p]) : "r"(0x43084308u));
        }
      mma_bf16(acc, a[0][0], a[1][0], a[0][1], a[1][1], b.x, b.y);
      mma_bf16(acc, a[0][2], a[1][2], a[0][3], a[1][3], b.z, b.w);
    }
    total[0] += acc[0] * scale[row * (k / 128) + group];
    total[1] += acc[2] * scale[(row + 8) * (k / 128) + group];
  }
  if (c == 0) { part[warp][g] = total[0]; part[warp][g + 8] = total[1]; }
  __syncthreads();
  if (t < 16) { float s = 0; for (int i = 0; i < 8; ++i) s += part[i][t]; y[blockIdx.x * 16 + t] = s; }
}
// x = step (256 h + l) in signed bytes: h is column 0, l column 1. Nibbles are bytes after one AND; sums are exact.
extern "C" __global__ void __launch_bounds__(256) int4_bytes(const uint4* q, const float* scale, const unsigned short* x, float* y, int k) {
  extern __shared__ uint2 bytes[];                         // [k / 128][4 words][4 lanes][2 columns] of b0 b1
  __shared__ float part[8][16];
  __shared__ int sums[K_MOST / 128][2];
  __shared__ u32 most;
  int t = threadIdx.x, warp = t / 32, lane = t % 32, g = lane / 4, c = lane % 4, row = blockIdx.x * 16 + g;
  if (t == 0) most = 0;
  for (int i = t; i < k / 64; i += 256) ((int*)sums)[i] = 0;
  __syncthreads();
  float m = 0;
  for (int i = t; i < k; i += 256) m = fmaxf(m, fabsf(__uint_as_float((u32)x[i] << 16)));
  atomicMax(&most, __float_as_uint(m));
  __syncthreads();
  float step = fmaxf(__uint_as_float(most), 1e-30f) / 32000.f, inverse = 1.f / step;
  for (int i = t; i < k / 8; i += 256) {
    u32 h[2] = {0, 0}, l[2] = {0, 0};
    int hs = 0, ls = 0;
    for (int e = 0; e < 8; ++e) {
      int v = __float2int_rn(__uint_as_float((u32)x[8 * i + e] << 16) * inverse), hi = (v + 128) >> 8, lo = v - 256 * hi;
      h[e % 2] |= (hi & 255u) << (8 * (e / 2)); l[e % 2] |= (lo & 255u) << (8 * (e / 2));
      hs += hi; ls += lo;
    }
    int at = ((i / 16 * 4 + i % 4) * 4 + i / 4 % 4) * 2;
    bytes[at] = make_uint2(h[0], h[1]); bytes[at + 1] = make_uint2(l[0], l[1]);
    atomicAdd(&sums[i / 16][0], hs); atomicAdd(&sums[i / 16][1], ls);
  }
  __syncthreads();
  float total[2] = {0, 0};
  #pragma unroll 4
  for (int group = warp; group < k / 128; group += 8) {
    uint4 v0 = q[(long long)row * (k / 32) + group * 4 + c], v1 = q[(long long)(row + 8) * (k / 32) + group * 4 + c];
    u32 w0[4] = {v0.x, v0.y, v0.z, v0.w}, w1[4] = {v1.x, v1.y, v1.z, v1.w};
    int h8 = -8 * sums[group][0], l8 = -8 * sums[group][1], acc[4] = {h8, l8, h8, l8};
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      uint2 b = g < 2 ? bytes[((group * 4 + j) * 4 + c) * 2 + g] : make_uint2(0, 0);
      asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3])
          : "r"(w0[j] & 0x0f0f0f0fu), "r"(w1[j] & 0x0f0f0f0fu), "r"((w0[j] >> 4) & 0x0f0f0f0fu), "r"((w1[j] >> 4) & 0x0f0f0f0fu), "r"(b.x), "r"(b.y));
    }
    total[0] += (256.f * acc[0] + acc[1]) * scale[row * (k / 128) + group];
    total[1] += (256.f * acc[2] + acc[3]) * scale[(row + 8) * (k / 128) + group];
  }
  if (c == 0) { part[warp][g] = total[0] * step; part[warp][g + 8] = total[1] * step; }
  __syncthreads();
  if (t < 16) { float s = 0; for (int i = 0; i < 8; ++i) s += part[i][t]; y[blockIdx.x * 16 + t] = s; }
}
