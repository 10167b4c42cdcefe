// Least times of a launch and of a barrier over the grid.
#include "bits.h"
extern "C" __global__ void null_kernel() {}
extern "C" __global__ void null_early() { pdl_start_next(); pdl_wait(); }
// `rounds` barriers over a grid whose blocks are all resident; `count` grows by gridDim.x a round, 0 at the start.
extern "C" __global__ void grid_barriers(u32* count, int rounds, int* error) {
  for (int r = 1; r <= rounds; ++r) {
    __syncthreads();
    if (threadIdx.x == 0) {
      add_acq_rel(count, 1);
      int n = 0;
      while (load_acquire(count) < (u32)r * gridDim.x) if (++n > SPINS) { *error = 1; break; }
    }
    __syncthreads();
    if (*(volatile int*)error) return;
  }
}
// y += 1 in place, one float4 a thread.
extern "C" __global__ void step_plain(float4* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = y[i];
  y[i] = make_float4(v.x + 1, v.y + 1, v.z + 1, v.w + 1);
}
extern "C" __global__ void step_early(float4* y) {
  pdl_start_next();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  pdl_wait();                                              // before the first read and the first write of y
  float4 v = y[i];
  y[i] = make_float4(v.x + 1, v.y + 1, v.z + 1, v.w + 1);
}
