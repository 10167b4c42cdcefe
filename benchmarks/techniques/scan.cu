// Inclusive sums of fp32, tiles of 4096 values, 256 threads with 16 contiguous values each.
#include "bits.h"
// Sums of the thread's values in v, offsets of the block added; returns the tile's sum to every thread.
DEV float tile_scan(float (&v)[16], float& before) {
  __shared__ float part[9];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = 1; i < 16; ++i) v[i] += v[i - 1];
  float s = v[15];
  for (int o = 1; o < 32; o <<= 1) { float u = __shfl_up_sync(~0u, s, o); if (lane >= o) s += u; }
  __syncthreads();
  if (lane == 31) part[warp] = s;
  __syncthreads();
  before = s - v[15];
  float all = 0;
  for (int i = 0; i < 8; ++i) { if (i == warp) before += all; all += part[i]; }
  return all;
}
// state[tile] = {flag << 32 | bits}: 0 nothing, 1 the tile's sum, 2 the sum of all tiles up to it; ticket and state are 0.
extern "C" __global__ void __launch_bounds__(256) lookback(const float4* x, float4* y, u64* state, u32* ticket, int* error) {
  __shared__ int mine;
  __shared__ float prefix;
  if (threadIdx.x == 0) mine = (int)atomicAdd(ticket, 1u);  // tiles in the order of start: no wait for a block not yet run
  __syncthreads();
  int tile = mine;
  __shared__ Tile memory;
  float v[16], before;
  memory.load(x, tile, v);
  float sum = tile_scan(v, before);
  if (threadIdx.x == 0) store_release(state + tile, ((u64)(tile ? 1 : 2) << 32) | __float_as_uint(sum));
  if (threadIdx.x < 32 && tile) {                          // a warp looks at 32 tiles before it at once
    float run = 0;
    for (int end = tile - 1;; end -= 32) {
      int at = end - (int)threadIdx.x, n = 0;
      u64 s = 2ull << 32;
      if (at >= 0) while (!((s = load_acquire(state + at)) >> 32)) if (++n > SPINS) { *error = 1; s = 2ull << 32; break; }
      u32 done = __ballot_sync(~0u, (s >> 32) == 2);
      int stop = done ? __ffs(done) - 1 : 31;
      run += warp_sum((int)threadIdx.x <= stop ? __uint_as_float((u32)s) : 0.f);
      if (done) break;
    }
    if (threadIdx.x == 0) { prefix = run; store_release(state + tile, (2ull << 32) | __float_as_uint(run + sum)); }
  }
  __syncthreads();
  memory.store(y, tile, v, before + (tile ? prefix : 0.f));
}
extern "C" __global__ void __launch_bounds__(256) tile_sums(const float4* x, float* sums) {
  __shared__ Tile memory;
  float v[16], before;
  memory.load(x, blockIdx.x, v);
  float s = tile_scan(v, before);
  if (threadIdx.x == 0) sums[blockIdx.x] = s;
}
extern "C" __global__ void __launch_bounds__(256) scan_sums(float* sums, int tiles) {    // one block, up to 4096 tiles
  float v[16], before;
  for (int i = 0; i < 16; ++i) { int at = threadIdx.x * 16 + i; v[i] = at < tiles ? sums[at] : 0; }
  tile_scan(v, before);
  for (int i = 0; i < 16; ++i) { int at = threadIdx.x * 16 + i; if (at < tiles) sums[at] = v[i] + before; }
}
extern "C" __global__ void __launch_bounds__(256) tile_scans(const float4* x, float4* y, const float* sums) {
  __shared__ Tile memory;
  float v[16], before;
  memory.load(x, blockIdx.x, v);
  tile_scan(v, before);
  memory.store(y, blockIdx.x, v, before + (blockIdx.x ? sums[blockIdx.x - 1] : 0.f));
}
// words[tile] = {epoch, the tile's sum}: a tile adds the sums of all tiles before it by itself, so that no tile waits for
// another one's prefix. All blocks are resident.
extern "C" __global__ void __launch_bounds__(256) all_sums(const float4* x, float4* y, u64* words, int* error) {
  __shared__ u32 now;
  __shared__ Tile memory;
  float v[16], before, own = 0, other = 0;
  memory.load(x, blockIdx.x, v);
  for (int i = 0; i < 16; ++i) own += v[i];
  own = block_sum<256>(own);
  if (threadIdx.x == 0) {
    now = (u32)(words[blockIdx.x] >> 32) + 1;
    store_release(words + blockIdx.x, ((u64)now << 32) | __float_as_uint(own));  // before this tile's own scan
  }
  tile_scan(v, before);                                    // its barriers make `now` visible
  for (int at = threadIdx.x; at < (int)blockIdx.x; at += 256) {
    u64 w; int n = 0;
    while ((u32)((w = load_acquire(words + at)) >> 32) != now) if (++n > SPINS) { *error = 1; break; }
    other += __uint_as_float((u32)w);
  }
  memory.store(y, blockIdx.x, v, before + block_sum<256>(other));
}
