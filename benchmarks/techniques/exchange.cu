// Sums over several blocks, and their use by the same blocks: clusters, epochs, counters, two kernels.
#include "bits.h"
#define PART 16384                                         // values of a block; 512 threads with 32 values each
DEV void read(const float4* x, float4 (&v)[8], float& s) {
  s = 0;
  for (int i = 0; i < 8; ++i) { v[i] = x[(long long)blockIdx.x * (PART / 4) + i * 512 + threadIdx.x]; s += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w; }
}
DEV void write(float4* y, const float4 (&v)[8], float f) {
  for (int i = 0; i < 8; ++i) y[(long long)blockIdx.x * (PART / 4) + i * 512 + threadIdx.x] = make_float4(v[i].x * f, v[i].y * f, v[i].z * f, v[i].w * f);
}
// y = x rsqrt(sum x^2); a row is 8 parts. Cluster of 8 blocks, the sums in distributed shared memory.
extern "C" __global__ void __launch_bounds__(512) row_cluster(const float4* x, float4* y) {
  __shared__ float sums[8];
  float4 v[8]; float s;
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  read(x, v, s);
  s = block_sum<512>(s);
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");   // no write before the other block has started
  if (threadIdx.x < 8) {                                   // thread i writes this block's sum into block i
    u32 rank, to, here = (u32)__cvta_generic_to_shared(sums);
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(here + 4 * rank), "r"(threadIdx.x));
    asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(to), "f"(s) : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  float all = 0;
  for (int i = 0; i < 8; ++i) all += sums[i];
  write(y, v, rsqrtf(all));
}
extern "C" __global__ void __launch_bounds__(512) row_parts(const float4* x, float* sums) {
  float4 v[8]; float s;
  read(x, v, s);
  s = block_sum<512>(s);
  if (threadIdx.x == 0) sums[blockIdx.x] = s;
}
extern "C" __global__ void __launch_bounds__(512) row_scale(const float4* x, float4* y, const float* sums) {
  float4 v[8]; float s, all = 0;
  read(x, v, s);
  for (int i = 0; i < 8; ++i) all += sums[blockIdx.x / 8 * 8 + i];
  write(y, v, rsqrtf(all));
}
// y = x rsqrt(sum of all x^2): the grid has at most 132 blocks, all resident.
// words[b] = {value, epoch}: a launch's epoch is one above the block's own last one, so nothing is reset.
extern "C" __global__ void __launch_bounds__(512) all_epoch(const float4* x, float4* y, u64* words, int* error) {
  __shared__ u32 now;
  float4 v[8]; float s;
  read(x, v, s);
  s = block_sum<512>(s);
  if (threadIdx.x == 0) {
    now = (u32)(words[blockIdx.x] >> 32) + 1;
    store_release(words + blockIdx.x, ((u64)now << 32) | __float_as_uint(s));
  }
  __syncthreads();
  float other = 0;
  if (threadIdx.x < gridDim.x) {                           // thread i waits for block i
    u64 w; int n = 0;
    while ((u32)((w = load_acquire(words + threadIdx.x)) >> 32) != now) if (++n > SPINS) { *error = 1; break; }
    other = __uint_as_float((u32)w);
  }
  write(y, v, rsqrtf(block_sum<512>(other)));
}
extern "C" __global__ void __launch_bounds__(512) all_counter(const float4* x, float4* y, float* sum, u32* count, int* error) {   // both 0
  float4 v[8]; float s;
  read(x, v, s);
  s = block_sum<512>(s);
  if (threadIdx.x == 0) {
    atomicAdd(sum, s);
    add_acq_rel(count, 1);
    int n = 0;
    while (load_acquire(count) < gridDim.x) if (++n > SPINS) { *error = 1; break; }
  }
  __syncthreads();
  write(y, v, rsqrtf(__ldcg(sum)));
}
extern "C" __global__ void __launch_bounds__(512) all_scale(const float4* x, float4* y, const float* sums) {
  float4 v[8]; float s;
  read(x, v, s);
  write(y, v, rsqrtf(block_sum<512>(threadIdx.x < gridDim.x ? sums[threadIdx.x] : 0.f)));
}
