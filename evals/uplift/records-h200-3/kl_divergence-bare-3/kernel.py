"""kl_divergence: y[r] = sum_c p (log p - log q), p = softmax(teacher[r]), q = softmax(student[r]).

One pass over both inputs.  Everything is kept relative to a reference logit per lane (near the maximum seen
so far, changed only when a chunk's sum of exponentials grows large), in base 2:
  A = sum 2^dt, B = sum 2^dt (dt - ds), C = sum 2^ds,   y = ln2 (B/A + log2 C - log2 A).
"""

import functools

import numpy
import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define L2E 1.4426950408889634f
#define LN2 0.69314718055994531f
#define FULL 0xffffffffu
#define NEG (-__int_as_float(0x7f800000))

__device__ __forceinline__ float ex2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ uint4 ldg(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ u32 word(const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

template <typename T> struct Tr;
template <> struct Tr<float> {
  static constexpr bool HALF = false;
  static constexpr int N = 4;
  static __device__ __forceinline__ float get(const uint4& v, int j) { return __uint_as_float(word(v, j)); }
  static __device__ __forceinline__ u32 bits(const float* p) { return __float_as_uint(*p); }
};
template <> struct Tr<__nv_bfloat16> {
  static constexpr bool HALF = false;
  static constexpr int N = 8;
  static __device__ __forceinline__ float get(const uint4& v, int j) {
    u32 w = word(v, j >> 1);
    return __uint_as_float((j & 1) ? (w & 0xffff0000u) : (w << 16));
  }
};
template <> struct Tr<__half> {
  static constexpr bool HALF = true;
  static constexpr int N = 8;
  static __device__ __forceinline__ float get(const uint4& v, int j) {
    u32 w = word(v, j >> 1);
    return __half2float(__ushort_as_half((unsigned short)((j & 1) ? (w >> 16) : w)));
  }
};

// elements idx .. idx+N of a row, those outside of [0, V) left zero
template <typename T> __device__ __noinline__ uint4 partial(const T* row, i64 idx, i64 V) {
  constexpr int N = Tr<T>::N;
  u32 w[4] = {0, 0, 0, 0};
#pragma unroll
  for (int j = 0; j < N; j++)
    if (idx + j >= 0 && idx + j < V) {
      if (sizeof(T) == 4) w[j & 3] = ((const u32*)row)[idx + j];
      else w[(j >> 1) & 3] |= (u32)((const unsigned short*)row)[idx + j] << (16 * (j & 1));
    }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

struct Part { float mt, rt, ms, rs, A, B, C, pad; };

__device__ __forceinline__ void shift(Part& p, float mt, float rt, float ms, float rs) {
  // state of p moved to the references (mt, rt), (ms, rs); log2 of a reference is m * L2E - r
  float dt = (p.mt - mt) * L2E - (p.rt - rt), ds = (p.ms - ms) * L2E - (p.rs - rs);
  if (p.A != 0.f) {
    float f = ex2(dt);
    p.B = f * (p.B + p.A * (dt - ds));
    p.A *= f;
  } else { p.A = 0.f; p.B = 0.f; }
  p.C = p.C != 0.f ? p.C * ex2(ds) : 0.f;
  p.mt = mt; p.rt = rt; p.ms = ms; p.rs = rs;
}

// all lanes of a warp, result in every lane
__device__ __forceinline__ void warp_merge(Part& p) {
  float mt0 = __shfl_sync(FULL, p.mt, 0), ms0 = __shfl_sync(FULL, p.ms, 0);
  float rt0 = __shfl_sync(FULL, p.rt, 0), rs0 = __shfl_sync(FULL, p.rs, 0);
  if (!__all_sync(FULL, p.mt == mt0 && p.ms == ms0 && p.rt == rt0 && p.rs == rs0)) {
    float mt = p.mt, ms = p.ms;
#pragma unroll
    for (int o = 16; o; o >>= 1) {
      mt = fmaxf(mt, __shfl_xor_sync(FULL, mt, o));
      ms = fmaxf(ms, __shfl_xor_sync(FULL, ms, o));
    }
    // a finite maximum exists: some lane has elements.  r of the new reference is taken as 0: exact (m * L2E).
    if (p.A == 0.f && p.mt == NEG) { p.mt = mt; p.ms = ms; p.rt = p.rs = 0.f; p.A = p.B = p.C = 0.f; }
    else shift(p, mt, 0.f, ms, 0.f);
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) {
    p.A += __shfl_xor_sync(FULL, p.A, o);
    p.B += __shfl_xor_sync(FULL, p.B, o);
    p.C += __shfl_xor_sync(FULL, p.C, o);
  }
}

__device__ __forceinline__ float finish(const Part& p) {
  return LN2 * (p.B / p.A + (log2f(p.C) - log2f(p.A)));
}

template <typename T, int U> struct State {
  static constexpr int N = Tr<T>::N;
  float mt, Mt, ms, Ms, A, B, C;
  bool any, big;  // the same for the whole warp
  __device__ __forceinline__ void reset() { mt = ms = NEG; Mt = Ms = A = B = C = 0.f; any = false; big = false; }
  __device__ __forceinline__ float off(float m, float M) const { return big ? 0.f : fmaf(m, L2E, -M); }

  // references from a vector of every lane of the warp
  __device__ __forceinline__ void init(const uint4& t, const uint4& s, u32 mask) {
    float xt = NEG, xs = NEG;
#pragma unroll
    for (int j = 0; j < N; j++)
      if (mask >> j & 1) { xt = fmaxf(xt, Tr<T>::get(t, j)); xs = fmaxf(xs, Tr<T>::get(s, j)); }
#pragma unroll
    for (int o = 16; o; o >>= 1) {
      xt = fmaxf(xt, __shfl_xor_sync(FULL, xt, o));
      xs = fmaxf(xs, __shfl_xor_sync(FULL, xs, o));
    }
    mt = xt; ms = xs; Mt = mt * L2E; Ms = ms * L2E;
    any = true;
    big = fabsf(mt) > 16384.f || fabsf(ms) > 16384.f;
  }
  __device__ __forceinline__ void lift(float xt, float xs) {
    Part p{mt, off(mt, Mt), ms, off(ms, Ms), A, B, C, 0.f};
    mt = xt; ms = xs; Mt = mt * L2E; Ms = ms * L2E;
    shift(p, mt, off(mt, Mt), ms, off(ms, Ms));
    A = p.A; B = p.B; C = p.C;
  }
  // whole vectors, references small; false, with nothing added, where a reference is too far below the chunk's maximum
  __device__ __forceinline__ bool fast(const uint4* t, const uint4* s) {
    float a0 = 0.f, a1 = 0.f, b0 = 0.f, b1 = 0.f, c0 = 0.f, c1 = 0.f;
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int j = 0; j < N; j++) {
        float dt = fmaf(Tr<T>::get(t[u], j), L2E, -Mt), ds = fmaf(Tr<T>::get(s[u], j), L2E, -Ms);
        float e = ex2(dt), g = ex2(ds), d = dt - ds;
        if (j & 1) { a1 += e; c1 += g; b1 = fmaf(e, d, b1); }
        else { a0 += e; c0 += g; b0 = fmaf(e, d, b0); }
      }
    a0 += a1; c0 += c1;
    if (__any_sync(FULL, fmaxf(a0, c0) > 4.f * U * N)) return false;
    A += a0; B += b0 + b1; C += c0;
    return true;
  }
  // one vector a lane, any mask, any reference
  __device__ __forceinline__ void slow(const uint4& t, const uint4& s, u32 mask) {
    float xt = mt, xs = ms;
#pragma unroll
    for (int j = 0; j < N; j++)
      if (mask >> j & 1) { xt = fmaxf(xt, Tr<T>::get(t, j)); xs = fmaxf(xs, Tr<T>::get(s, j)); }
    if (xt - mt > 0.5f || xs - ms > 0.5f) lift(xt, xs);
#pragma unroll
    for (int j = 0; j < N; j++) {
      float x = Tr<T>::get(t, j), z = Tr<T>::get(s, j);
      float dt = big ? (x - mt) * L2E : fmaf(x, L2E, -Mt), ds = big ? (z - ms) * L2E : fmaf(z, L2E, -Ms);
      if (mask >> j & 1) { float e = ex2(dt); A += e; C += ex2(ds); B = fmaf(e, dt - ds, B); }
    }
  }
  __device__ __forceinline__ Part part() const {
    return Part{mt, any ? off(mt, Mt) : 0.f, ms, any ? off(ms, Ms) : 0.f, A, B, C, 0.f};
  }
};

// Vectors of 16 bytes; element 0 of vector 0 is element -mis of the row.  Whole are the vectors lo .. hi; they are taken in
// chunks of `size` from lo on.  After the last of these chunks, from x0 on, come the nx vectors that are not whole.
template <typename T> struct Row {
  static constexpr int N = Tr<T>::N;
  const T *s, *t;
  int mis, lo, hi, n, x0, end;
  __device__ __forceinline__ Row(const T* s0, const T* t0, i64 ss, i64 ts, i64 r, i64 V, int size) {
    s = s0 + r * ss; t = t0 + r * ts;
    mis = (int)(((u64)s & 15) / sizeof(T));
    lo = mis > 0; hi = (int)((V + mis) / N); n = (int)((V + mis + N - 1) / N);
    if ((((u64)s ^ (u64)t) & 15) != 0) { lo = 0; hi = 0; }
    hi = max(hi, lo);
    x0 = lo + (hi - lo + size - 1) / size * size;
    end = x0 + (n - hi) + lo;
  }
  __device__ __forceinline__ u32 mask(int v, i64 V) const {
    i64 first = (i64)v * N - mis;
    u32 m = (1u << N) - 1;
    if (first < 0) m &= m << (int)(-first);
    i64 left = V - first;
    if (left <= 0) m = 0;
    else if (left < N) m &= (1u << (int)left) - 1;
    return m;
  }
};

template <typename T, int U>
__device__ __forceinline__ void chunk_slow(State<T, U>& st, const Row<T>& row, int v0, int lane, i64 V) {
  constexpr int N = Tr<T>::N;
  bool whole = v0 < row.x0;
#pragma unroll 1
  for (int u = 0; u < U; u++) {
    int first = v0 + 32 * u, v = first + lane;
    if (first >= (whole ? row.hi : row.end)) break;
    uint4 t = make_uint4(0, 0, 0, 0), s = t;
    u32 mask = 0;
    if (whole) {
      if (v < row.hi) {
        mask = (1u << N) - 1;
        t = ldg((const uint4*)(row.t - row.mis) + v); s = ldg((const uint4*)(row.s - row.mis) + v);
      }
    } else if (v < row.end) {
      int i = row.hi + (v - row.x0), w = i < row.n ? i : 0;
      mask = row.mask(w, V);
      t = partial<T>(row.t, (i64)w * N - row.mis, V); s = partial<T>(row.s, (i64)w * N - row.mis, V);
    }
    if (!st.any) st.init(t, s, mask);
    st.slow(t, s, mask);
  }
}

template <typename T, int U>
__device__ __forceinline__ void chunk(State<T, U>& st, const Row<T>& row, int v0, int lane, i64 V) {
  if (v0 < row.x0 && !st.big) {
    uint4 t[U], s[U];
    const uint4* sp = (const uint4*)(row.s - row.mis) + v0 + lane;
    const uint4* tp = (const uint4*)(row.t - row.mis) + v0 + lane;
    if (v0 + 32 * U <= row.hi) {
#pragma unroll
      for (int u = 0; u < U; u++) { t[u] = ldg(tp + 32 * u); s[u] = ldg(sp + 32 * u); }
    } else {  // past the end a very low logit, the same for both
      const u32 low = Tr<T>::HALF ? 0xfbfffbffu : 0xf149f149u;
#pragma unroll
      for (int u = 0; u < U; u++) {
        t[u] = s[u] = make_uint4(low, low, low, low);
        if (v0 + lane + 32 * u < row.hi) { t[u] = ldg(tp + 32 * u); s[u] = ldg(sp + 32 * u); }
      }
    }
    if (!st.any) st.init(t[0], s[0], v0 + lane < row.hi ? FULL : 0u);
    if (!st.big && st.fast(t, s)) return;
  }
  chunk_slow<T, U>(st, row, v0, lane, V);
}

__device__ __forceinline__ void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void pdl_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ __forceinline__ u32 cluster_rank() { u32 r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ __forceinline__ u32 cluster_size() { u32 r; asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r)); return r; }

// one row to a warp
template <typename T, int U>
__global__ void __launch_bounds__(256) rows_by_warp(const T* __restrict__ sp, const T* __restrict__ tp, float* __restrict__ y, i64 rows, i64 V, i64 ss, i64 ts) {
  int lane = threadIdx.x & 31;
  i64 r = (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  pdl_wait();
  pdl_next();
  if (r >= rows) return;
  Row<T> row(sp, tp, ss, ts, r, V, 32 * U);
  State<T, U> st;
  st.reset();
  for (int v = row.lo; v < row.end; v += 32 * U) chunk<T, U>(st, row, v, lane, V);
  Part p = st.part();
  warp_merge(p);
  if (lane == 0) y[r] = finish(p);
}

// one row to a cluster of blocks
template <typename T, int U, int MAXT, int MINB>
__global__ void __launch_bounds__(MAXT, MINB) rows_by_cluster(const T* __restrict__ sp, const T* __restrict__ tp, float* __restrict__ y, i64 rows, i64 V, i64 ss, i64 ts) {
  __shared__ __align__(16) Part parts[128];  // warps of a cluster
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  u32 rank = cluster_rank(), size = cluster_size();
  i64 r = blockIdx.x / size;
  if (size > 1) asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
  Row<T> row(sp, tp, ss, ts, r, V, 32 * U);
  State<T, U> st;
  st.reset();
  int step = 32 * U * warps * size;
  int v = row.lo + 32 * U * (rank * warps + warp);
  pdl_wait();
  pdl_next();
  for (; v < row.end; v += step) chunk<T, U>(st, row, v, lane, V);
  Part p = st.part();
  warp_merge(p);
  if (size == 1) {
    if (lane == 0) parts[warp] = p;
    __syncthreads();
    if (warp == 0) {
      p = Part{NEG, 0.f, NEG, 0.f, 0.f, 0.f, 0.f, 0.f};
      if (lane < warps) p = parts[lane];
      warp_merge(p);
      if (lane == 0) y[r] = finish(p);
    }
  } else {  // every warp hands its part to block 0 of the cluster
    asm volatile("barrier.cluster.wait;" ::: "memory");
    if (lane == 0) {
      u32 local = (u32)__cvta_generic_to_shared(&parts[rank * warps + warp]), remote;
      asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote) : "r"(local));
      asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" :: "r"(remote), "f"(p.mt), "f"(p.rt), "f"(p.ms), "f"(p.rs) : "memory");
      asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" :: "r"(remote + 16), "f"(p.A), "f"(p.B), "f"(p.C), "f"(0.f) : "memory");
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    if (rank == 0 && warp == 0) {
      p = Part{NEG, 0.f, NEG, 0.f, 0.f, 0.f, 0.f, 0.f};
      if (lane < warps * size) p = parts[lane];
      for (int i = lane + 32; i < warps * size; i += 32) {
        Part o = parts[i];
        float mt = fmaxf(p.mt, o.mt), ms = fmaxf(p.ms, o.ms);
        shift(p, mt, 0.f, ms, 0.f);
        shift(o, mt, 0.f, ms, 0.f);
        p.A += o.A; p.B += o.B; p.C += o.C;
      }
      warp_merge(p);
      if (lane == 0) y[r] = finish(p);
    }
  }
}
"""
TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float32: "float", torch.float16: "__half"}


@functools.cache
def compiled(name: str, device: int):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


@functools.cache
def processors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def launching(grid: int, block: int, cluster: int):
    options = {"cluster": (cluster,)} if cluster > 1 else {}
    try:  # the kernels wait for the previous one before they touch memory
        return LaunchConfig(grid=(grid,), block=(block,), programmatic_stream_serialization=True, **options)
    except TypeError:
        return LaunchConfig(grid=(grid,), block=(block,), **options)


@functools.cache
def choose(rows, vocabulary, dtype, sms):
    """('warp', U, warps) or ('cluster', U, threads, blocks of an SM, blocks of a cluster)"""
    vectors = -(-vocabulary // (4 if dtype == torch.float32 else 8))
    if vectors <= 256:
        return ("warp", 2 if vectors <= 64 else 4, 4)
    if vectors <= 512:
        return ("cluster", 4, 128, 8, 1)
    if vectors < 2048 or rows > 4 * sms:
        return ("cluster", 4, 512, 2, 1) if vectors >= 8000 else ("cluster", 4, 256, 4, 1)
    if rows > sms:
        return ("cluster", 2, 512, 2, 1)
    if rows > sms // 2 or vectors < 4096:
        return ("cluster", 2, 1024, 1, 1)
    if rows > sms // 4:
        return ("cluster", 2, 1024, 1, 2)
    if rows > sms // 8 or vectors < 8192:
        return ("cluster", 2, 512, 2, 4)
    return ("cluster", 2, 512, 2, 8)


def run(student, teacher):
    rows, vocabulary = student.shape
    if student.dtype not in TYPES or teacher.dtype != student.dtype or teacher.shape != student.shape:
        raise TypeError(f"kl_divergence of {student.dtype} {tuple(student.shape)}, {teacher.dtype} {tuple(teacher.shape)}")
    if vocabulary > 1 and student.stride(1) != 1:
        student = student.contiguous()
    if vocabulary > 1 and teacher.stride(1) != 1:
        teacher = teacher.contiguous()
    y = torch.empty((rows,), dtype=torch.float32, device=student.device)
    if rows == 0:
        return y
    if vocabulary == 0:
        return y.zero_()
    index = student.device.index
    kind, *how = choose(rows, vocabulary, student.dtype, processors(index))
    name = TYPES[student.dtype]
    if kind == "warp":
        unroll, warps = how
        kernel = compiled(f"rows_by_warp<{name}, {unroll}>", index)
        config = launching(-(-rows // warps), warps * 32, 1)
    else:
        unroll, block, blocks, cluster = how
        kernel = compiled(f"rows_by_cluster<{name}, {unroll}, {block}, {blocks}>", index)
        config = launching(rows, block, cluster)
    stream = Stream.from_handle(torch.cuda.current_stream(student.device).cuda_stream)
    launch(
        stream, config, kernel,
        student.data_ptr(), teacher.data_ptr(), y.data_ptr(),
        numpy.int64(rows), numpy.int64(vocabulary), numpy.int64(student.stride(0)), numpy.int64(teacher.stride(0)),
    )
    return y
