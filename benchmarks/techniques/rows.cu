// y = x rsqrt(sum of the row's x^2), bf16, rows that do not start at 16 bytes. A warp computes a row, up to 256 values.
#include "bits.h"
typedef unsigned short u16;
#define VALUES 8                                           // of a lane
DEV float wide(u16 v) { return __uint_as_float((u32)v << 16); }
DEV u16 narrow(float v) { return (u16)bf16x2(v, 0.f); }
// Reads and writes of 2 bytes, those of a warp side by side.
extern "C" __global__ void __launch_bounds__(256) rows_narrow(const u16* x, u16* y, int rows, int cols) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float v[VALUES], s = 0;
  #pragma unroll
  for (int i = 0; i < VALUES; ++i) { int c = lane + 32 * i; v[i] = c < cols ? wide(x[(long long)row * cols + c]) : 0.f; s += v[i] * v[i]; }
  s = rsqrtf(warp_sum(s));
  #pragma unroll
  for (int i = 0; i < VALUES; ++i) { int c = lane + 32 * i; if (c < cols) y[(long long)row * cols + c] = narrow(v[i] * s); }
}
// Reads and writes of 16 bytes at the multiples of 16 bytes that cover the row; its ends are cut off, and written by values.
extern "C" __global__ void __launch_bounds__(256) rows_window(const u16* x, u16* y, int rows, int cols) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  long long start = (long long)row * cols, end = start + cols, total = (long long)rows * cols, at = (start & ~7ll) + 8 * lane;
  u16 v[8]; float s = 0;
  if (at + 8 <= total && at < end) *(uint4*)v = *(const uint4*)(x + at);
  else for (int i = 0; i < 8; ++i) v[i] = at + i < end ? x[at + i] : 0;
  for (int i = 0; i < 8; ++i) { float f = at + i >= start && at + i < end ? wide(v[i]) : 0.f; s += f * f; }
  s = rsqrtf(warp_sum(s));
  for (int i = 0; i < 8; ++i) v[i] = narrow(wide(v[i]) * s);
  if (at >= start && at + 8 <= end) *(uint4*)(y + at) = *(uint4*)v;
  else for (int i = 0; i < 8; ++i) if (at + i >= start && at + i < end) y[at + i] = v[i];
}
// A block's rows are one flat piece of memory: 64 rows start at a multiple of 16 bytes whatever their length. It goes
// through shared memory in pieces of 16 bytes, and the rows are read there.
extern "C" __global__ void __launch_bounds__(256) rows_flat(const u16* x, u16* y, int rows, int cols) {
  extern __shared__ __align__(16) u16 memory[];
  int first = blockIdx.x * 64, count = min(64, rows - first) * cols, lane = threadIdx.x % 32;
  const u16* from = x + (long long)first * cols; u16* to = y + (long long)first * cols;
  for (int i = threadIdx.x; i < count / 8; i += 256) ((uint4*)memory)[i] = ((const uint4*)from)[i];
  for (int i = count / 8 * 8 + threadIdx.x; i < count; i += 256) memory[i] = from[i];
  __syncthreads();
  for (int row = threadIdx.x / 32; row < count / cols; row += 8) {
    float v[VALUES], s = 0;
    #pragma unroll
    for (int i = 0; i < VALUES; ++i) { int c = lane + 32 * i; v[i] = c < cols ? wide(memory[row * cols + c]) : 0.f; s += v[i] * v[i]; }
    s = rsqrtf(warp_sum(s));
    #pragma unroll
    for (int i = 0; i < VALUES; ++i) { int c = lane + 32 * i; if (c < cols) memory[row * cols + c] = narrow(v[i] * s); }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count / 8; i += 256) ((uint4*)to)[i] = ((const uint4*)memory)[i];
  for (int i = count / 8 * 8 + threadIdx.x; i < count; i += 256) to[i] = memory[i];
}
