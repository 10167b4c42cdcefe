// y[m, n] = x[m, k] w[n, k]^T in bf16, fp32 sums and outputs. A block has 8 warps and 16 rows of w.
#include "bits.h"
// Grid (n / 16, splits); split s owns k / splits columns. Returns the block's tile sums in part[0].
template <int M> DEV void tile(const uint4* w, const uint4* x, int k, int m, float (&part)[8][16][M]) {
  constexpr int N = (M + 7) / 8;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, v = k / 8;
  int span = v / gridDim.y, first = blockIdx.y * span;     // in 16-byte vectors; a step is 4 of them, 32 columns
  const uint4* w0 = w + (long long)(blockIdx.x * 16 + g) * v, *w1 = w0 + 8LL * v;
  float acc[N][4] = {};
  #pragma unroll 4
  for (int s = warp * 4 + c; s < span; s += 32) {
    uint4 a = w0[first + s], b = w1[first + s];
    #pragma unroll
    for (int i = 0; i < N; ++i) {
      uint4 e = g + 8 * i < m ? x[(long long)(g + 8 * i) * v + first + s] : make_uint4(0, 0, 0, 0);
      mma_bf16(acc[i], a.x, b.x, a.y, b.y, e.x, e.y);
      mma_bf16(acc[i], a.z, b.z, a.w, b.w, e.z, e.w);
    }
  }
  #pragma unroll
  for (int i = 0; i < N; ++i)
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      int col = 8 * i + 2 * c + h;
      if (col < M) { part[warp][g][col] = acc[i][h]; part[warp][g + 8][col] = acc[i][2 + h]; }
    }
  __syncthreads();
  if (threadIdx.x < 16 * M) {
    int r = threadIdx.x / M, col = threadIdx.x % M; float s = 0;
    for (int i = 0; i < 8; ++i) s += part[i][r][col];
    part[0][r][col] = s;
  }
  __syncthreads();
}
template <int M> DEV void tensor(const uint4* w, const uint4* x, float* y, int n, int k) {
  __shared__ float part[8][16][M];
  tile<M>(w, x, k, M, part);
  if (threadIdx.x < 16 * M) y[threadIdx.x / 16 * n + blockIdx.x * 16 + threadIdx.x % 16] = part[0][threadIdx.x % 16][threadIdx.x / 16];
}
template <int M> DEV void scalar(const uint4* w, const uint4* x, float* y, int n, int k) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x * 16 + warp * 2, v = k / 8;
  float acc[2][M] = {};
  #pragma unroll 4
  for (int s = lane; s < v; s += 32) {
    uint4 a[2] = {w[(long long)row * v + s], w[(long long)(row + 1) * v + s]};
    #pragma unroll
    for (int m = 0; m < M; ++m) {
      uint4 e = x[(long long)m * v + s];
      #pragma unroll
      for (int r = 0; r < 2; ++r)
        acc[r][m] += low(a[r].x) * low(e.x) + high(a[r].x) * high(e.x) + low(a[r].y) * low(e.y) + high(a[r].y) * high(e.y)
                   + low(a[r].z) * low(e.z) + high(a[r].z) * high(e.z) + low(a[r].w) * low(e.w) + high(a[r].w) * high(e.w);
    }
  }
  for (int r = 0; r < 2; ++r) for (int m = 0; m < M; ++m) { float s = warp_sum(acc[r][m]); if (lane == 0) y[m * n + row + r] = s; }
}
#define BOTH(M) \
extern "C" __global__ void __launch_bounds__(256) tensor_##M(const uint4* w, const uint4* x, float* y, int n, int k) { tensor<M>(w, x, y, n, k); } \
extern "C" __global__ void __launch_bounds__(256) scalar_##M(const uint4* w, const uint4* x, float* y, int n, int k) { scalar<M>(w, x, y, n, k); }
BOTH(1) BOTH(4) BOTH(8) BOTH(16)
// m = 1, the K loop split over gridDim.y.
extern "C" __global__ void __launch_bounds__(256) split_atomic(const uint4* w, const uint4* x, float* y, int n, int k) {   // y is 0
  __shared__ float part[8][16][1];
  tile<1>(w, x, k, 1, part);
  if (threadIdx.x < 16) atomicAdd(y + blockIdx.x * 16 + threadIdx.x, part[0][threadIdx.x][0]);
}
extern "C" __global__ void __launch_bounds__(256) split_store(const uint4* w, const uint4* x, float* work, int n, int k) {
  __shared__ float part[8][16][1];
  tile<1>(w, x, k, 1, part);
  if (threadIdx.x < 16) work[blockIdx.y * n + blockIdx.x * 16 + threadIdx.x] = part[0][threadIdx.x][0];
}
extern "C" __global__ void split_sum(const float* work, float* y, int n, int splits) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; float s = 0;
  if (i >= n) return;
  for (int j = 0; j < splits; ++j) s += work[j * n + i];
  y[i] = s;
}
// The last block of a tile sums in fixed order and sets the counter back to 0: no reset kernel, same bits each time.
extern "C" __global__ void __launch_bounds__(256) split_semaphore(const uint4* w, const uint4* x, float* work, float* y, u32* count, int n, int k) {
  __shared__ float part[8][16][1];
  __shared__ bool last;
  tile<1>(w, x, k, 1, part);
  int i = blockIdx.x * 16 + threadIdx.x;
  if (threadIdx.x < 16) work[blockIdx.y * n + i] = part[0][threadIdx.x][0];
  __syncthreads();                                         // the barrier and the release below order the 16 stores
  if (threadIdx.x == 0) { __threadfence(); last = add_acq_rel(count + blockIdx.x, 1) == gridDim.y - 1; }
  __syncthreads();
  if (!last || threadIdx.x >= 16) return;
  float s = 0;
  for (int j = 0; j < (int)gridDim.y; ++j) s += __ldcg(work + j * n + i);
  y[i] = s;
  if (threadIdx.x == 0) count[blockIdx.x] = 0;
}
