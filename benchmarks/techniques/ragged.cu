// Segment sums: out[r] = sum of v[ptr[r] .. ptr[r + 1]). `total` values, a multiple of 4096.
#include "bits.h"
#define CHUNK 4096
extern "C" __global__ void __launch_bounds__(256) block_per_row(const float* v, const int* ptr, float* out) {
  int r = blockIdx.x, b = ptr[r], e = ptr[r + 1];
  float s = 0;
  for (int i = b + threadIdx.x; i < e; i += 256) s += v[i];
  s = block_sum<256>(s);
  if (threadIdx.x == 0) out[r] = s;
}
extern "C" __global__ void __launch_bounds__(256) warp_per_row(const float* v, const int* ptr, float* out, int rows) {
  int r = blockIdx.x * 8 + threadIdx.x / 32;
  if (r >= rows) return;
  float s = 0;
  for (int i = ptr[r] + threadIdx.x % 32, e = ptr[r + 1]; i < e; i += 32) s += v[i];
  s = warp_sum(s);
  if (threadIdx.x % 32 == 0) out[r] = s;
}
// Least r with ptr[r] >= value, by a whole warp: 32 probes a step, so 2 million rows take 5 steps.
DEV int first_at_least(const int* ptr, int n, int value) {
  int lo = 0, lane = threadIdx.x % 32;
  while (n > 0) {
    int step = (n + 31) / 32, at = lane * step;
    int below = __popc(__ballot_sync(~0u, at < n && ptr[lo + min(at, n - 1)] < value));
    if (below == 0) break;
    int begin = (below - 1) * step + 1, end = min(below * step, n);
    lo += begin; n = end - begin;
  }
  return lo;
}
// One block a chunk of values. A row's start is marked in shared memory; out is 0 before, so empty rows need nothing.
extern "C" __global__ void __launch_bounds__(256) chunks(const float4* v, const int* ptr, float* out, int rows) {
  __shared__ Tile memory;
  __shared__ int row_at[CHUNK];                            // row + 1 that starts at the value, 0 for none
  __shared__ float carry[8];
  __shared__ int carry_row[8];
  __shared__ int range[2];
  int t = threadIdx.x, base = blockIdx.x * CHUNK, lane = t % 32, warp = t / 32;
  float x[16];
  memory.load(v, blockIdx.x, x);
  for (int i = t; i < CHUNK; i += 256) row_at[i] = 0;
  if (warp < 2) { int r = first_at_least(ptr, rows, base + warp * CHUNK); if (lane == 0) range[warp] = r; }
  __syncthreads();
  for (int r = range[0] + t; r < range[1]; r += 256) { int b = ptr[r]; if (b < ptr[r + 1]) row_at[b - base] = r + 1; }
  __syncthreads();
  // Thread's sums: the part before its first start (head), rows inside it (written), the open one (tail).
  float s = 0, head = 0;
  int open = 0;                                            // row + 1 of the open row, 0: it came from the left
  #pragma unroll
  for (int i = 0; i < 16; ++i) {
    int r = row_at[t * 16 + i];
    if (r) { if (open) out[open - 1] = s; else head = s; open = r; s = 0; }
    s += x[i];
  }
  if (!open) head = s;
  // Inclusive scan of (open, s) over threads: the right one wins if it has a start.
  int o = open; float c = s;
  for (int d = 1; d < 32; d <<= 1) {
    int lo = __shfl_up_sync(~0u, o, d); float lc = __shfl_up_sync(~0u, c, d);
    if (lane >= d && !o) { o = lo; c += lc; }
  }
  if (lane == 31) { carry[warp] = c; carry_row[warp] = o; }
  __syncthreads();
  int po = __shfl_up_sync(~0u, o, 1); float pc = __shfl_up_sync(~0u, c, 1);
  if (lane == 0) { po = 0; pc = 0; }
  for (int w = warp - 1; w >= 0 && !po; --w) { pc += carry[w]; po = carry_row[w]; }   // what the thread inherits
  int left = range[0] - 1;                                 // the row that comes from the chunk before, if any
  if (open && po) out[po - 1] = pc + head;
  else if (open && (t || !row_at[0])) atomicAdd(out + left, pc + head);
  if (t == 255) atomicAdd(out + (open ? open - 1 : po ? po - 1 : left), open ? s : pc + head);   // may go on
}
