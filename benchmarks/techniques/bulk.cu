// A block brings 16 stages of 64 KB into shared memory by bulk copies of `piece` bytes that `lanes` threads of a warp issue.
#include "bits.h"
extern "C" __global__ void __launch_bounds__(128) bulk_pieces(const char* x, float* y, int piece, int lanes) {
  extern __shared__ __align__(128) char memory[];
  __shared__ __align__(8) u64 barrier;
  u32 bar = (u32)__cvta_generic_to_shared(&barrier), to = (u32)__cvta_generic_to_shared(memory);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.proxy.async.shared::cta;" :: "r"(bar) : "memory");
  __syncthreads();
  for (int stage = 0; stage < 16; ++stage) {
    const char* from = x + ((long long)blockIdx.x * 16 + stage) * 65536;
    if (threadIdx.x == 0) asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared.b64 t, [%0], %1; }" :: "r"(bar), "r"(65536) : "memory");
    if (threadIdx.x < 32) __syncwarp();
    if ((int)threadIdx.x < lanes)
      for (int at = threadIdx.x * piece; at < 65536; at += lanes * piece)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(to + at), "l"(from + at), "r"(piece), "r"(bar) : "memory");
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra W; }" :: "r"(bar), "r"(stage & 1) : "memory");
    __syncthreads();
  }
  y[blockIdx.x * 128 + threadIdx.x] = ((float*)memory)[threadIdx.x * 128];
}
