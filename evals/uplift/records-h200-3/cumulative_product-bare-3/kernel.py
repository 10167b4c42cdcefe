"""cumulative_product: y[r, c] = x[r, 0] * x[r, 1] * ... * x[r, c]

Single pass over memory. Rows are held in registers as 16 byte vectors:
  rowk   a group of 1..32 lanes per row (several rows per group when rows are short)
  tilek  a block per tile of a row; tiles of a row are joined through
         mode 0: nothing (one tile is the row), mode 1: a thread block cluster (distributed shared memory),
         mode 2: published tile products in scratch memory that `clear` has zeroed in this call,
         mode 4/5: a first kernel that writes the tile products, a second one that uses them.
Products of segments are kept in double: a segment's product is a ratio of two prefixes and can leave the range of
float even though no prefix does. A zero absorbs all that follows it.
Kernels use programmatic dependent launch: each waits for its predecessor before it touches what that one may write.
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

SOURCE = r"""
typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;

__device__ __forceinline__ void dep_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void dep_go() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

template <int K> struct Ty { static constexpr int V = K == 0 ? 4 : 8, ES = K == 0 ? 4 : 2; };

template <int K> __device__ __forceinline__ void unpack2(u32 w, float& a, float& b) {
  if (K == 1) { a = __uint_as_float(w << 16); b = __uint_as_float(w & 0xffff0000u); }
  else asm("{.reg .b16 l,h; mov.b32 {l,h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(a), "=f"(b) : "r"(w));
}
template <int K> __device__ __forceinline__ u32 pack2(float a, float b) {
  u32 w;
  if (K == 1) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(b), "f"(a));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(b), "f"(a));
  return w;
}
template <int K> __device__ __forceinline__ void unpack(const uint4& q, float* f) {
  if (K == 0) {
    f[0] = __uint_as_float(q.x); f[1] = __uint_as_float(q.y); f[2] = __uint_as_float(q.z); f[3] = __uint_as_float(q.w);
  } else {
    unpack2<K>(q.x, f[0], f[1]); unpack2<K>(q.y, f[2], f[3]); unpack2<K>(q.z, f[4], f[5]); unpack2<K>(q.w, f[6], f[7]);
  }
}
template <int K> __device__ __forceinline__ uint4 pack(const float* f) {
  if (K == 0) return make_uint4(__float_as_uint(f[0]), __float_as_uint(f[1]), __float_as_uint(f[2]), __float_as_uint(f[3]));
  return make_uint4(pack2<K>(f[0], f[1]), pack2<K>(f[2], f[3]), pack2<K>(f[4], f[5]), pack2<K>(f[6], f[7]));
}
template <int K> __device__ __forceinline__ uint4 ones() {
  const u32 w = K == 0 ? 0x3f800000u : K == 1 ? 0x3f803f80u : 0x3c003c00u;
  return make_uint4(w, w, w, w);
}
__device__ __forceinline__ uint4 ldv(const char* p) {
  uint4 q;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w) : "l"(p));
  return q;
}
__device__ __forceinline__ void stv(char* p, const uint4& q) {
#if STREAM
  asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p), "r"(q.x), "r"(q.y), "r"(q.z), "r"(q.w) : "memory");
#else
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p), "r"(q.x), "r"(q.y), "r"(q.z), "r"(q.w) : "memory");
#endif
}

// The vector at position p; positions outside of [lo, hi) read as one. A: no vector is partly inside.
template <int K, int A> __device__ __forceinline__ uint4 load(const char* base, int p, int lo, int hi) {
  constexpr int V = Ty<K>::V, ES = Ty<K>::ES;
  const char* a = base + (i64)p * ES;
  if (p >= lo && p + V <= hi) return ldv(a);
  uint4 q = ones<K>();
  if (!A && p + V > lo && p < hi) {
    u32 w[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int j = 0; j < V; j++)
      if (p + j >= lo && p + j < hi) {
        if (K == 0) w[j & 3] = *(const u32*)(a + 4 * j);
        else {
          u32 e = *(const unsigned short*)(a + 2 * j);
          w[(j >> 1) & 3] = (j & 1) ? (w[(j >> 1) & 3] & 0xffffu) | (e << 16) : (w[(j >> 1) & 3] & 0xffff0000u) | e;
        }
      }
    q = make_uint4(w[0], w[1], w[2], w[3]);
  }
  return q;
}
template <int K, int A> __device__ __forceinline__ void store(char* base, int p, int lo, int hi, const uint4& q) {
  constexpr int V = Ty<K>::V, ES = Ty<K>::ES;
  char* a = base + (i64)p * ES;
  if (p >= lo && p + V <= hi) { stv(a, q); return; }
  if (!A && p + V > lo && p < hi) {
    u32 w[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int j = 0; j < V; j++)
      if (p + j >= lo && p + j < hi) {
        if (K == 0) *(u32*)(a + 4 * j) = w[j & 3];
        else *(unsigned short*)(a + 2 * j) = (unsigned short)(w[(j >> 1) & 3] >> (16 * (j & 1)));
      }
  }
}

// Left product times right product; what follows a zero is zero even where it overflowed by itself.
__device__ __forceinline__ acc op(acc a, acc b) { acc m = a * b; return a == (acc)0 ? (acc)0 : m; }
// The same where either side may hold the zero.
__device__ __forceinline__ acc op2(acc a, acc b) { acc m = a * b; return a == (acc)0 || b == (acc)0 ? (acc)0 : m; }

template <int K> __device__ __forceinline__ acc product(const uint4& q) {
  constexpr int V = Ty<K>::V;
  float f[V];
  unpack<K>(q, f);
  acc d[V];
#pragma unroll
  for (int j = 0; j < V; j++) d[j] = f[j];
  if (V == 4) return (d[0] * d[1]) * (d[2] * d[3]);
  return ((d[0] * d[1]) * (d[2] * d[3])) * ((d[4 & (V - 1)] * d[5 & (V - 1)]) * (d[6 & (V - 1)] * d[7 & (V - 1)]));
}
template <int K> __device__ __forceinline__ uint4 finish(const uint4& q, acc before) {
  constexpr int V = Ty<K>::V;
  float f[V], p = (float)before;
  unpack<K>(q, f);
#pragma unroll
  for (int j = 0; j < V; j++) { p *= f[j]; f[j] = p; }
  return pack<K>(f);
}
template <int G> __device__ __forceinline__ acc scan(acc v, int lane) {
#pragma unroll
  for (int o = 1; o < G; o *= 2) {
    acc t = __shfl_up_sync(~0u, v, o, G);
    if (lane >= o) v = op(t, v);
  }
  return v;
}

template <int K, int G, int C, int R, int A>
__global__ void __launch_bounds__(256) rowk(const char* __restrict__ x, char* __restrict__ y, i64 rows, i64 cols) {
  constexpr int V = Ty<K>::V, ES = Ty<K>::ES, GPB = 256 / G;
  dep_wait();
  dep_go();
  const int lane = threadIdx.x & (G - 1);
  const i64 row0 = (i64)blockIdx.x * (GPB * R) + threadIdx.x / G;
  uint4 q[R][C];
  i64 base[R];
  int lo[R], hi[R];
#pragma unroll
  for (int r = 0; r < R; r++) {
    const i64 row = row0 + r * GPB, start = row * cols;
    const int s = A ? 0 : (int)(start & (V - 1));
    base[r] = (start - s) * ES;
    lo[r] = s;
    hi[r] = row < rows ? s + (int)cols : 0;
    if (row >= rows) lo[r] = 0;
#pragma unroll
    for (int c = 0; c < C; c++) q[r][c] = load<K, A>(x + base[r], (c * G + lane) * V, lo[r], hi[r]);
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    acc carry = 1;
#pragma unroll
    for (int c = 0; c < C; c++) {
      acc e = 1;
      if (G > 1) {
        acc v = scan<G>(product<K>(q[r][c]), lane);
        e = __shfl_up_sync(~0u, v, 1, G);
        if (lane == 0) e = 1;
        e = op(carry, e);
        if (c + 1 < C) carry = op(carry, __shfl_sync(~0u, v, G - 1, G));
      } else {
        e = carry;
        if (c + 1 < C) carry = op(carry, product<K>(q[r][c]));
      }
      store<K, A>(y + base[r], (c * G + lane) * V, lo[r], hi[r], finish<K>(q[r][c], e));
    }
  }
}

__global__ void __launch_bounds__(1024) clear(u64* scratch, i64 words) {
#if EARLY
  dep_go();
  dep_wait();
#else
  dep_wait();
  dep_go();
#endif
  for (i64 i = blockIdx.x * 1024ll + threadIdx.x; i < words; i += gridDim.x * 1024ll) scratch[i] = 0;
}

// A published product is never the word 0: that says "not there yet". Plus zero goes as minus zero.
__device__ __forceinline__ void publish(u64* a, double v) {
  u64 w = __double_as_longlong(v);
  if (w == 0) w = 1ull << 63;
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(a), "l"(w) : "memory");
}
__device__ __forceinline__ double collect(const u64* a) {
  u64 w;
  do asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(w) : "l"(a) : "memory");
  while (w == 0);
  return __longlong_as_double(w);
}

// scratch: per row tpr tile products, then per row a prefix for each group of 256 tiles.
template <int K, int NT, int C, int A, int MODE, int BLOCKS>
__global__ void __launch_bounds__(NT, BLOCKS) tilek(const char* __restrict__ x, char* __restrict__ y, i64 rows, i64 cols,
                                            int tpr, u64* scratch) {
  constexpr int V = Ty<K>::V, ES = Ty<K>::ES, NW = NT / 32, TILE = NT * C * V;
  __shared__ acc ws[NW];
  __shared__ double other[8];
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  if (MODE == 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  if (MODE != 5 && !(MODE == 2 && !EARLY)) dep_wait();
  if (MODE != 2) dep_go();
  const i64 row = blockIdx.x / (u32)tpr;
  const int t = blockIdx.x % (u32)tpr;
  const i64 start = row * cols;
  const int s = A ? 0 : (int)(start & (V - 1));
  const i64 first = (i64)t * TILE, base = (start - s + first) * ES;
  const int lo = t == 0 ? s : 0;
  const i64 left = s + cols - first;
  const int hi = left < TILE ? (int)left : TILE;
  const int p0 = (warp * C * 32 + lane) * V;
  uint4 q[C];
  if (lo == 0 && hi == TILE) {
#pragma unroll
    for (int c = 0; c < C; c++) q[c] = ldv(x + base + (i64)(p0 + c * 32 * V) * ES);
  } else {
#pragma unroll
    for (int c = 0; c < C; c++) q[c] = load<K, A>(x + base, p0 + c * 32 * V, lo, hi);
  }
  if (MODE == 4) {  // only the tile's product, in any order
    acc m = product<K>(q[0]);
#pragma unroll
    for (int c = 1; c < C; c++) m = op2(m, product<K>(q[c]));
#pragma unroll
    for (int o = 16; o; o /= 2) m = op2(m, __shfl_xor_sync(~0u, m, o));
    if (lane == 0) ws[warp] = m;
    __syncthreads();
    if (warp == 0) {
      m = ws[lane & (NW - 1)];
#pragma unroll
      for (int o = NW / 2; o; o /= 2) m = op2(m, __shfl_xor_sync(~0u, m, o));
      if (lane == 0) publish(scratch + row * tpr + t, (double)m);
    }
    return;
  }
  acc e[C], carry = 1;
#pragma unroll
  for (int c = 0; c < C; c++) {
    acc v = scan<32>(product<K>(q[c]), lane);
    e[c] = __shfl_up_sync(~0u, v, 1);
    if (lane == 0) e[c] = 1;
    e[c] = op(carry, e[c]);
    carry = op(carry, __shfl_sync(~0u, v, 31));
  }
  acc before = 1;
  if (NW > 1 || MODE) {
    if (lane == 0) ws[warp] = carry;
    __syncthreads();
    acc v = lane < NW ? ws[lane & (NW - 1)] : (acc)1;
    v = scan<NW>(v, lane & (NW - 1));
    const acc total = __shfl_sync(~0u, v, NW - 1);
    before = __shfl_sync(~0u, v, warp ? warp - 1 : 0);
    if (warp == 0) before = 1;
    if (MODE == 1) {
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
      if (threadIdx.x < tpr) {  // block `t` tells block `threadIdx.x`
        u32 mine = (u32)__cvta_generic_to_shared(&other[t]), theirs;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(mine), "r"((u32)threadIdx.x));
        asm volatile("st.shared::cluster.f64 [%0], %1;" :: "r"(theirs), "d"((double)total) : "memory");
      }
      asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
      acc far = 1;
#pragma unroll
      for (int i = 0; i < 7; i++)
        if (i < t) far = op(far, (acc)other[i]);
      before = op(far, before);
    }
    if (MODE == 2 || MODE == 5) {
      const int in = t & 255, g = t >> 8, groups = (tpr + 255) >> 8;
      u64* agg = scratch + row * tpr;
      u64* pre = scratch + rows * tpr + row * groups;
      if (MODE == 5 || !EARLY) dep_wait();
      if (MODE == 2 && threadIdx.x == 0 && in != 255 && t + 1 < tpr) publish(agg + t, (double)total);
      if (MODE == 2) dep_go();
      if (warp < 8) {
        double m = 1;
        const int i = threadIdx.x;
        if (i == 0) { if (g) m = collect(pre + g - 1); }
        else if (i <= in) m = collect(agg + (g << 8) + i - 1);
        __syncwarp();
#pragma unroll
        for (int o = 1; o < 32; o *= 2) {
          double r = __shfl_down_sync(~0u, m, o);
          if (!(lane & (2 * o - 1))) m = m == 0 ? 0 : m * r;
        }
        if (lane == 0) other[warp] = m;
      }
      __syncthreads();
      acc far = op(op(op(other[0], other[1]), op(other[2], other[3])), op(op(other[4], other[5]), op(other[6], other[7])));
      if (MODE == 2 && threadIdx.x == 0 && in == 255 && t + 1 < tpr) publish(pre + g, (double)op(far, total));
      before = op(far, before);
    }
  }
  if (lo == 0 && hi == TILE) {
#pragma unroll
    for (int c = 0; c < C; c++) stv(y + base + (i64)(p0 + c * 32 * V) * ES, finish<K>(q[c], op(before, e[c])));
  } else {
#pragma unroll
    for (int c = 0; c < C; c++) store<K, A>(y + base, p0 + c * 32 * V, lo, hi, finish<K>(q[c], op(before, e[c])));
  }
}

// tilek for rows of whole vectors, the tile held in shared memory so that a thread scans C neighbouring vectors
template <int K, int NT, int C, int A, int MODE, int BLOCKS>
__global__ void __launch_bounds__(NT, BLOCKS) deep(const char* __restrict__ x, char* __restrict__ y, i64 rows, i64 cols,
                                            int tpr, u64* scratch) {
  constexpr int V = Ty<K>::V, ES = Ty<K>::ES, NW = NT / 32, TILE = NT * C * V;
  __shared__ acc ws[NW];
  __shared__ double other[8];
  extern __shared__ uint4 held[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  if (MODE == 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  if (MODE != 5 && !(MODE == 2 && !EARLY)) dep_wait();
  if (MODE != 2) dep_go();
  const i64 row = blockIdx.x / (u32)tpr;
  const int t = blockIdx.x % (u32)tpr;
  const i64 start = row * cols;
  const int s = 0;
  const i64 first = (i64)t * TILE, base = (start - s + first) * ES;
  const i64 left = s + cols - first;
  const int hi = left < TILE ? (int)left : TILE;
  // vector i of the tile lies in slot i + i / C: a thread's C vectors are neighbours and banks differ
#pragma unroll
  for (int c = 0; c < C; c++) {
    const int i = c * NT + threadIdx.x;
    uint4* to = held + i + i / C;
    if (i * V < hi)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                   :: "r"((u32)__cvta_generic_to_shared(to)), "l"(x + base + (i64)i * 16) : "memory");
    else *to = ones<K>();
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  uint4* own = held + threadIdx.x * (C + 1);
  acc mine = product<K>(own[0]);
#pragma unroll
  for (int c = 1; c < C; c++) mine = op(mine, product<K>(own[c]));
  mine = scan<32>(mine, lane);
  acc e = __shfl_up_sync(~0u, mine, 1);
  if (lane == 0) e = 1;
  const acc carry = __shfl_sync(~0u, mine, 31);
  acc before = 1;
  if (NW > 1 || MODE) {
    if (lane == 0) ws[warp] = carry;
    __syncthreads();
    acc v = lane < NW ? ws[lane & (NW - 1)] : (acc)1;
    v = scan<NW>(v, lane & (NW - 1));
    const acc total = __shfl_sync(~0u, v, NW - 1);
    before = __shfl_sync(~0u, v, warp ? warp - 1 : 0);
    if (warp == 0) before = 1;
    if (MODE == 1) {
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
      if (threadIdx.x < tpr) {  // block `t` tells block `threadIdx.x`
        u32 here = (u32)__cvta_generic_to_shared(&other[t]), theirs;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(here), "r"((u32)threadIdx.x));
        asm volatile("st.shared::cluster.f64 [%0], %1;" :: "r"(theirs), "d"((double)total) : "memory");
      }
      asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
      acc far = 1;
#pragma unroll
      for (int i = 0; i < 7; i++)
        if (i < t) far = op(far, (acc)other[i]);
      before = op(far, before);
    }
    if (MODE == 2 || MODE == 5) {
      const int in = t & 255, g = t >> 8, groups = (tpr + 255) >> 8;
      u64* agg = scratch + row * tpr;
      u64* pre = scratch + rows * tpr + row * groups;
      if (MODE == 5 || !EARLY) dep_wait();
      if (MODE == 2 && threadIdx.x == 0 && in != 255 && t + 1 < tpr) publish(agg + t, (double)total);
      if (MODE == 2) dep_go();
      if (warp < 8) {
        double m = 1;
        const int i = threadIdx.x;
        if (i == 0) { if (g) m = collect(pre + g - 1); }
        else if (i <= in) m = collect(agg + (g << 8) + i - 1);
        __syncwarp();
#pragma unroll
        for (int o = 1; o < 32; o *= 2) {
          double r = __shfl_down_sync(~0u, m, o);
          if (!(lane & (2 * o - 1))) m = m == 0 ? 0 : m * r;
        }
        if (lane == 0) other[warp] = m;
      }
      __syncthreads();
      acc far = op(op(op(other[0], other[1]), op(other[2], other[3])), op(op(other[4], other[5]), op(other[6], other[7])));
      if (MODE == 2 && threadIdx.x == 0 && in == 255 && t + 1 < tpr) publish(pre + g, (double)op(far, total));
      before = op(far, before);
    }
  }
  float p = (float)op(before, e);
#pragma unroll
  for (int c = 0; c < C; c++) {
    float f[V];
    unpack<K>(own[c], f);
#pragma unroll
    for (int j = 0; j < V; j++) { p *= f[j]; f[j] = p; }
    own[c] = pack<K>(f);
  }
  __syncthreads();
#pragma unroll
  for (int c = 0; c < C; c++) {
    const int i = c * NT + threadIdx.x;
    if (i * V < hi) stv(y + base + (i64)i * 16, held[i + i / C]);
  }
}
"""
TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
DEFINES = {"acc": "double", "EARLY": "1", "STREAM": "0"}
FORCE = {}
PDL = True


@functools.cache
def compiled(name, arch):
    defines = [(key, value) for key, value in DEFINES.items()]
    options = ProgramOptions(arch=arch, std="c++17", define_macro=defines)
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


@functools.cache
def device_of(index):
    properties = torch.cuda.get_device_properties(index)
    arch = f"sm_{properties.major}{properties.minor}" + ("a" if properties.major >= 9 else "")
    return arch, properties.multi_processor_count


def attribute(name):
    each = driver.CUlaunchAttribute()
    each.id = getattr(driver.CUlaunchAttributeID, "CU_LAUNCH_ATTRIBUTE_" + name)
    return each


@functools.cache
def allow(name, arch, shared, index):
    kernel = driver.CUkernel(int(compiled(name, arch).handle))
    which = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    result = driver.cuKernelSetAttribute(which, shared, kernel, driver.CUdevice(index))
    if int(result[0]):
        raise RuntimeError(f"{name}: {result[0]}")


def start(name, arch, grid, block, values, types, cluster=1, shared=0):
    kernel = compiled(name, arch)
    if shared > 40960:
        allow(name, arch, shared, torch.cuda.current_device())
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
    config.sharedMemBytes = shared
    config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    attributes = []
    if PDL:
        each = attribute("PROGRAMMATIC_STREAM_SERIALIZATION")
        each.value.programmaticStreamSerializationAllowed = 1
        attributes.append(each)
    if cluster > 1:
        each = attribute("CLUSTER_DIMENSION")
        each.value.clusterDim.x, each.value.clusterDim.y, each.value.clusterDim.z = cluster, 1, 1
        attributes.append(each)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    result = driver.cuLaunchKernelEx(config, driver.CUfunction(int(kernel.handle)), (values, types), 0)
    if int(result[0]):
        raise RuntimeError(f"{name}: {result[0]}")


P, L, I = ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int


def blocks(kind, threads, chunks, deep=False):
    resident = FORCE.get("resident")
    if not resident and deep:
        resident = 1280 if chunks <= 8 else 768
    if not resident:
        resident = (1280 if chunks <= 4 else 768) if kind == 0 else (1024 if chunks <= 4 else 512)
    return max(1, resident // threads)


def power(n):
    return 1 << max(0, n - 1).bit_length()


def plan(rows, cols, vector, sms):
    """('row', G, C, R), or ('tile' or 'deep', NT, C, mode)."""
    if "plan" in FORCE:
        return FORCE["plan"]
    aligned = cols % vector == 0
    vectors = (cols + (0 if aligned else vector - 1) + vector - 1) // vector
    if vectors <= 32:
        group = power(vectors)
        repeat = 1
        return "row", group, 1, repeat
    if vectors <= 64 or vectors <= 128 and rows >= sms * 8:
        return "row", 32, (vectors + 31) // 32, 1
    if vectors <= 1024 or (vectors <= 4096 and rows * 4 >= sms * 3):
        if aligned and rows >= sms * 4 and 1792 < vectors <= 2048:
            return "deep", 256, 8, 0
        threads = 64
        while threads < 1024 and threads * (6 if rows >= sms * 4 else 2) < vectors:
            threads *= 2
        return "tile", threads, (vectors + threads - 1) // threads, 0
    if vectors <= 8 * 1024:
        return "tile", 256, 4, 1
    total = rows * vectors
    for threads, chunks in ((256, 4), (512, 4)):
        if total <= threads * chunks * sms * 2 and (vectors + threads * chunks - 1) // (threads * chunks) <= 256:
            return "tile", threads, chunks, 4
    return ("deep" if aligned and vector == 8 else "tile"), 256, 8, 2


def run(x):
    cols = x.shape[-1]
    x = x.contiguous()
    if x.data_ptr() % 16:
        x = x.clone()
    y = torch.empty_like(x)
    if x.numel() == 0:
        return y
    rows = x.numel() // cols
    kind = TYPES[x.dtype]
    vector = 4 if kind == 0 else 8
    arch, sms = device_of(x.device.index)
    aligned = int(cols % vector == 0)
    how, a, b, c = plan(rows, cols, vector, sms)
    if how == "row":
        per = 256 // a * c
        values, types = (x.data_ptr(), y.data_ptr(), rows, cols), (P, P, L, L)
        start(f"rowk<{kind},{a},{b},{c},{aligned}>", arch, (rows + per - 1) // per, 256, values, types)
        return y
    tile = a * b * vector
    tiles = (cols + (0 if aligned else vector - 1) + tile - 1) // tile
    scratch = None
    if c >= 2:
        words = rows * (tiles + (tiles + 255) // 256)
        scratch = torch.empty(words, dtype=torch.int64, device=x.device)
    values = (x.data_ptr(), y.data_ptr(), rows, cols, tiles, scratch.data_ptr() if c >= 2 else 0)
    types = (P, P, L, L, I, P)
    if c == 2:
        start("clear", arch, min(sms, (words + 1023) // 1024), 1024, (scratch.data_ptr(), words), (P, L))
    deep = how == "deep" and aligned
    for mode in (4, 5) if c == 4 else (c,):
        name = f"{'deep' if deep else 'tilek'}<{kind},{a},{b},{aligned},{mode},{blocks(kind, a, b, deep)}>"
        start(name, arch, rows * tiles, a, values, types, tiles if c == 1 else 1, a * (b + 1) * 16 if deep else 0)
    return y
