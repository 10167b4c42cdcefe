// What the kernels share: bf16 without headers, PDL, fences. Compiled by NVRTC for sm_90a.
typedef unsigned long long u64;
typedef unsigned int u32;
#define DEV __device__ __forceinline__
#define SPINS 20000000                                     // a wait ends after this many reads and sets *error
DEV float low(u32 pair) { return __uint_as_float(pair << 16); }
DEV float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
DEV u32 bf16x2(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
DEV void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEV void pdl_start_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
DEV u64 load_acquire(const u64* p) { u64 v; asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory"); return v; }
DEV void store_release(u64* p, u64 v) { asm volatile("st.release.gpu.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory"); }
DEV u32 load_acquire(const u32* p) { u32 v; asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
DEV u32 add_acq_rel(u32* p, u32 v) { u32 r; asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(v) : "memory"); return r; }
DEV float warp_sum(float v) { for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o); return v; }
template <int T> DEV float block_sum(float v) {            // every thread gets the sum; T threads
  __shared__ float part[32];
  v = warp_sum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_sum(threadIdx.x % 32 < T / 32 ? part[threadIdx.x % 32] : 0.f);
}
DEV void mma_bf16(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// A tile of 4096 values for 256 threads: coalesced in memory, 16 contiguous values a thread in v. No bank conflict.
struct Tile {
  float4 part[1024 + 128];
  DEV static int at(int i) { return i + i / 8; }
  DEV void load(const float4* x, long long tile, float (&v)[16]) {
    for (int i = 0; i < 4; ++i) part[at(i * 256 + threadIdx.x)] = x[tile * 1024 + i * 256 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      float4 a = part[at(threadIdx.x * 4 + i)];
      v[4 * i] = a.x; v[4 * i + 1] = a.y; v[4 * i + 2] = a.z; v[4 * i + 3] = a.w;
    }
    __syncthreads();
  }
  DEV void store(float4* y, long long tile, const float (&v)[16], float add) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) part[at(threadIdx.x * 4 + i)] = make_float4(v[4 * i] + add, v[4 * i + 1] + add, v[4 * i + 2] + add, v[4 * i + 3] + add);
    __syncthreads();
    for (int i = 0; i < 4; ++i) y[tile * 1024 + i * 256 + threadIdx.x] = part[at(i * 256 + threadIdx.x)];
  }
};
