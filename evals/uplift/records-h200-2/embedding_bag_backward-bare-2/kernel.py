"""embedding_bag_backward: y[v] = scale[v] * sum of grad[b] over all b and i with indices[b, i] = v; a row that no index names is 0

General path (5 chained kernels, no host sync):
  init     zero the counters
  hist     per-block hash table, then one atomic per distinct index and block: row counts and the rank of each entry
  alloc    a range of the bag list per row; empty rows of y are written here; work lists of light rows and heavy chunks
  scatter  bag list by row
  reduce   light rows by a lane group each, heavy rows in chunks by a block each (the last block of a row adds the chunks)
Small-vocabulary path: blocks hold a tile of grad in shared memory, sort their indices there, and add partial sums atomically.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

PDL = True
UNROLL = 4
LIGHT = 32
HBLOCKS = 5  # reduce blocks per multiprocessor
ZMIN, ZHIST, ZSCATTER = 48 << 20, 14 << 20, 8 << 20  # bytes of y filled beside hist and scatter
HE = 2  # hist entries per thread
HB = 512  # hist threads per block
LU = 4  # entries of a light row loaded at once
HMULT = 32  # entries per lane group of a heavy chunk
SMALL_PATH = True

SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#if TYPE == 0
typedef float T;
__device__ __forceinline__ float to_f(float x) { return x; }
__device__ __forceinline__ float from_f(float x) { return x; }
#elif TYPE == 1
typedef __nv_bfloat16 T;
__device__ __forceinline__ float to_f(T x) { return __bfloat162float(x); }
__device__ __forceinline__ T from_f(float x) { return __float2bfloat16(x); }
#else
typedef __half T;
__device__ __forceinline__ float to_f(T x) { return __half2float(x); }
__device__ __forceinline__ T from_f(float x) { return __float2half(x); }
#endif

// VEC elements of T per load
#if VEC == 1
typedef T V;
__device__ __forceinline__ V vzero() { return from_f(0.f); }
#else
typedef uint4 V;
__device__ __forceinline__ V vzero() { return make_uint4(0u, 0u, 0u, 0u); }
#endif

__device__ __forceinline__ void vadd(float (&a)[VEC], const V& x) {
#if VEC == 1
  a[0] += to_f(x);
#elif TYPE == 0
  a[0] += __uint_as_float(x.x); a[1] += __uint_as_float(x.y);
  a[2] += __uint_as_float(x.z); a[3] += __uint_as_float(x.w);
#elif TYPE == 1
  unsigned w[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    a[2 * i] += __uint_as_float(w[i] << 16);
    a[2 * i + 1] += __uint_as_float(w[i] & 0xffff0000u);
  }
#else
  unsigned w[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float2 f = __half22float2(*reinterpret_cast<__half2*>(&w[i]));
    a[2 * i] += f.x;
    a[2 * i + 1] += f.y;
  }
#endif
}

__device__ __forceinline__ V vpack(const float (&a)[VEC], float s) {
#if VEC == 1
  return from_f(a[0] * s);
#else
  union { uint4 v; T t[16 / sizeof(T)]; } u;
#pragma unroll
  for (int i = 0; i < VEC; i++) u.t[i] = from_f(a[i] * s);
  return u.v;
#endif
}

__device__ __forceinline__ void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void pdl_go() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// glob: 0 entries handed out, 1 light rows, 2 heavy chunks, 3 partial sums
extern "C" __global__ void __launch_bounds__(256) init_kernel(int4* p, long long n4) {
  pdl_wait();
  pdl_go();
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n4; i += gridDim.x * 256ll) p[i] = make_int4(0, 0, 0, 0);
}

// rows [from, to) of y in units of V, by blocks of `threads`
__device__ __forceinline__ void fill(V* __restrict__ y, long long from, long long to, int block, int blocks, int threads) {
  V z = vzero();
  for (long long i = from + (long long)block * threads + threadIdx.x; i < to; i += (long long)blocks * threads) y[i] = z;
}

#define TABLE (2 * HB * HE)
extern "C" __global__ void __launch_bounds__(HB) hist_kernel(const long long* __restrict__ idx, int* count, int2* __restrict__ pairs, int n,
    V* __restrict__ y, long long zto, int own) {
  __shared__ int keys[TABLE], cnt[TABLE];
  pdl_go();
  if ((int)blockIdx.x >= own) {
    pdl_wait();
    fill(y, 0, zto, blockIdx.x - own, gridDim.x - own, HB);
    return;
  }
  int t = threadIdx.x;
  int v[HE], h[HE], lr[HE], r[HE];
  int first = blockIdx.x * (HB * HE);
#pragma unroll
  for (int i = 0; i < HE; i++) {
    int e = first + i * HB + t;
    v[i] = e < n ? (int)idx[e] : -1;
  }
#pragma unroll
  for (int i = t; i < TABLE; i += HB) { keys[i] = -1; cnt[i] = 0; }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < HE; i++) {
    h[i] = 0; lr[i] = 1;
    if (v[i] >= 0) {
      unsigned s = ((unsigned)v[i] * 2654435761u) >> 12;
      while (true) {
        s &= TABLE - 1;
        int k = *(volatile int*)&keys[s];
        if (k == v[i]) break;
        if (k == -1) {
          k = atomicCAS(&keys[s], -1, v[i]);
          if (k == -1 || k == v[i]) break;
        }
        s++;
      }
      h[i] = s;
      lr[i] = atomicAdd(&cnt[s], 1);
    }
  }
  __syncthreads();
  // the first entry of each distinct index adds the block's count of it
#pragma unroll
  for (int i = 0; i < HE; i++) r[i] = lr[i] == 0 ? cnt[h[i]] : 0;
  pdl_wait();
#pragma unroll
  for (int i = 0; i < HE; i++)
    if (lr[i] == 0) r[i] = atomicAdd(&count[v[i]], r[i]);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < HE; i++)
    if (lr[i] == 0) cnt[h[i]] = r[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < HE; i++) {
    int e = first + i * HB + t;
    if (e < n) pairs[e] = make_int2(v[i], cnt[h[i]] + lr[i]);
  }
}

// one thread per row of y
extern "C" __global__ void __launch_bounds__(256) alloc_kernel(int* count, int* glob, int4* __restrict__ light, int4* __restrict__ items,
    V* __restrict__ y, int rows, int L, int lg, int chunk, int z0) {
  __shared__ int sums[4][8], empty[256], base_s[4];
  pdl_go();
  pdl_wait();
  int t = threadIdx.x, lane = t & 31, w = t >> 5;
  int v = blockIdx.x * 256 + t;
  int c = v < rows ? count[v] : -1;
  empty[t] = c == 0 && v >= z0;
  int cc = max(c, 0), x = cc;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    int o = __shfl_up_sync(~0u, x, d);
    if (lane >= d) x += o;
  }
  bool is_light = c > 0 && c <= LIGHT;
  unsigned lm = __ballot_sync(~0u, is_light);
  unsigned hm = __ballot_sync(~0u, c > LIGHT);
  int nc = c > LIGHT ? (c - 1) / chunk + 1 : 0, np = nc > 1 ? nc : 0, xc = nc, xp = np;
  if (hm) {
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      int o = __shfl_up_sync(~0u, xc, d), q = __shfl_up_sync(~0u, xp, d);
      if (lane >= d) { xc += o; xp += q; }
    }
  }
  if (lane == 31) { sums[0][w] = x; sums[1][w] = __popc(lm); sums[2][w] = xc; sums[3][w] = xp; }
  __syncthreads();
  if (t < 4) {
    int s = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) { int a = sums[t][i]; sums[t][i] = s; s += a; }
    base_s[t] = s ? atomicAdd(&glob[t], s) : 0;
  }
  // empty rows, while thread 0 waits for its atomics
  {
    int G = 1 << lg, g = t >> lg, gl = t & (G - 1), ng = 256 >> lg;
    V z = vzero();
    long long v0 = blockIdx.x * 256ll;
    for (int r = g; r < 256; r += ng)
      if (empty[r])
        for (int col = gl; col < L; col += G) y[(v0 + r) * L + col] = z;
  }
  __syncthreads();
  int off = base_s[0] + sums[0][w] + x - cc;
  if (c > 0) count[v] = off;
  if (is_light) light[base_s[1] + sums[1][w] + __popc(lm & ((1u << lane) - 1))] = make_int4(v, off, c, 0);
  int ia = base_s[2] + sums[2][w] + xc - nc, ib = base_s[3] + sums[3][w] + xp - np;
  if (nc == 1) {
    items[2 * (long long)ia] = make_int4(v, off, c, 1);
    items[2 * (long long)ia + 1] = make_int4(0, 0, 0, 0);
  }
  hm = __ballot_sync(~0u, nc > 1);
  while (hm) {
    int src = __ffs(hm) - 1;
    hm &= hm - 1;
    int hv = __shfl_sync(~0u, v, src), ho = __shfl_sync(~0u, off, src), hc = __shfl_sync(~0u, c, src), hn = __shfl_sync(~0u, nc, src);
    int a = __shfl_sync(~0u, ia, src), b = __shfl_sync(~0u, ib, src);
    for (int i = lane; i < hn; i += 32) {
      items[2 * (long long)(a + i)] = make_int4(hv, ho + i * chunk, min(chunk, hc - i * chunk), hn);
      items[2 * (long long)(a + i) + 1] = make_int4(b, i, 0, 0);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) scatter_kernel(const int2* __restrict__ pairs, const int* __restrict__ offset, int* __restrict__ list, int n, int length,
    V* __restrict__ y, long long zfrom, long long zto, int own) {
  pdl_go();
  if ((int)blockIdx.x >= own) {
    pdl_wait();
    fill(y, zfrom, zto, blockIdx.x - own, gridDim.x - own, 256);
    return;
  }
  int e = blockIdx.x * 512 + threadIdx.x;
  int bag = e / length, bag2 = (e + 256) / length;
  pdl_wait();
  bool two = e + 256 < n;
  if (e < n) {
    int2 p = pairs[e], q = two ? pairs[e + 256] : p;
    int o = offset[p.x] + p.y, o2 = offset[q.x] + q.y;
    list[o] = bag;
    if (two) list[o2] = bag2;
  }
}

__device__ __forceinline__ void gather(float (&a)[VEC], const V* __restrict__ g, const int* __restrict__ list, int i, int end, int stride, int L) {
  int b[UNROLL];
#pragma unroll
  for (int j = 0; j < UNROLL; j++) b[j] = i + j * stride < end ? list[i + j * stride] : -1;
  while (i < end) {
    V r[UNROLL];
#pragma unroll
    for (int j = 0; j < UNROLL; j++) {
      r[j] = vzero();
      if (b[j] >= 0) r[j] = __ldg(g + (long long)b[j] * L);
    }
    i += UNROLL * stride;
#pragma unroll
    for (int j = 0; j < UNROLL; j++) b[j] = i + j * stride < end ? list[i + j * stride] : -1;
#pragma unroll
    for (int j = 0; j < UNROLL; j++) vadd(a, r[j]);
  }
}

extern "C" __global__ void __launch_bounds__(256, HBLOCKS) reduce_kernel(const V* __restrict__ grad, const float* __restrict__ scale, const int* __restrict__ list,
    const int4* __restrict__ light, const int4* __restrict__ items, const int* __restrict__ glob, int* done, float* partial,
    T* __restrict__ y, int D, int L, int lg, int CT) {
  __shared__ float red[256 * VEC];
  __shared__ int last;
  pdl_go();
  int t = threadIdx.x, G = 1 << lg, g = t >> lg, gl = t & (G - 1), NG = 256 >> lg;
  pdl_wait();
  long long nheavy = (long long)glob[2] * CT, nlight = (long long)glob[1] * CT;
  int span = G * VEC;
  for (long long w = blockIdx.x; w < nheavy; w += gridDim.x) {
    int it = (int)(w / CT), ct = (int)(w - (long long)it * CT);
    int4 A = items[2 * (long long)it], B = items[2 * (long long)it + 1];
    int col = ct * G + gl;
    float a[VEC];
#pragma unroll
    for (int j = 0; j < VEC; j++) a[j] = 0.f;
    if (col < L) gather(a, grad + col, list, A.y + g, A.y + A.z, NG, L);
#pragma unroll
    for (int j = 0; j < VEC; j++) red[t * VEC + j] = a[j];
    __syncthreads();
    int used = min(NG, A.z);
    int e = ct * span + t;
    bool act = t < span && e < D;
    float s = 0.f;
    if (act)
      for (int k = 0; k < used; k++) s += red[k * span + t];
    if (A.w == 1) {
      if (act) y[(long long)A.x * D + e] = from_f(s * scale[A.x]);
    } else {
      if (act) partial[(long long)(B.x + B.y) * D + e] = s;
      __threadfence();
      __syncthreads();
      if (t == 0) last = atomicAdd(&done[(long long)B.x * CT + ct], 1) == A.w - 1;
      __syncthreads();
      if (last) {
        __threadfence();
        // the block's 256 threads as `parts` rows of span columns
        int parts = 256 / span, part = t / span, c = t - part * span, ee = ct * span + c;
        s = 0.f;
        if (ee < D) {
          const float* p = partial + (long long)B.x * D + ee;
#pragma unroll 8
          for (int k = part; k < A.w; k += parts) s += __ldcg(p + (long long)k * D);
        }
        red[t] = s;
        __syncthreads();
        if (act) {
          for (int k = 1; k < parts; k++) s += red[k * span + t];
          y[(long long)A.x * D + e] = from_f(s * scale[A.x]);
        }
      }
    }
    __syncthreads();
  }
  // spread the light rows from the other end, so that blocks without a heavy chunk take them first
  long long step = (long long)gridDim.x * NG, w = (long long)(gridDim.x - 1 - blockIdx.x) * NG + g;
  const int4 none = make_int4(0, 0, 0, 0);
  auto entry = [&](long long q) { return q < nlight ? light[CT == 1 ? q : q / CT] : none; };
  int4 A = entry(w), An = entry(w + step);
  int b[LU];
#pragma unroll
  for (int j = 0; j < LU; j++) b[j] = j < A.z ? list[A.y + j] : -1;
  for (; w < nlight; w += step) {
    int col = (CT == 1 ? 0 : (int)(w % CT) * G) + gl;
    bool act = col < L;
    float sc = scale[A.x];
    V r[LU];
#pragma unroll
    for (int j = 0; j < LU; j++) {
      r[j] = vzero();
      if (act && b[j] >= 0) r[j] = __ldg(grad + (long long)b[j] * L + col);
    }
    int4 A2 = entry(w + 2 * step);
#pragma unroll
    for (int j = 0; j < LU; j++) b[j] = j < An.z ? list[An.y + j] : -1;
    float a[VEC];
#pragma unroll
    for (int j = 0; j < VEC; j++) a[j] = 0.f;
#pragma unroll
    for (int j = 0; j < LU; j++) vadd(a, r[j]);
    if (act) {
      if (A.z > LU) gather(a, grad + col, list, A.y + LU, A.y + A.z, 1, L);
      reinterpret_cast<V*>(y)[(long long)A.x * L + col] = vpack(a, sc);
    }
    A = An;
    An = A2;
  }
}

#if VEC > 1
// 128-byte column slice of a chunk of bags; entries sorted by index in shared memory; 128 groups of 8 lanes sum equal shares
extern "C" __global__ void __launch_bounds__(1024) small_kernel(const uint4* __restrict__ grad, const long long* __restrict__ idx, const float* __restrict__ scale,
    float* __restrict__ acc, int bags, int length, int rows, int L, int B) {
  extern __shared__ uint4 smem[];
  uint4* tile = smem;                                        // B * 8
  unsigned* list = reinterpret_cast<unsigned*>(smem + B * 8);  // B * length
  int* cnt = reinterpret_cast<int*>(list + B * length);        // rows
  __shared__ int wsum[32];
  pdl_go();
  int t = threadIdx.x, lane = t & 31, w = t >> 5;
  int b0 = blockIdx.y * B, nb = min(B, bags - b0), c0 = blockIdx.x * 8;
  for (int i = t; i < nb * 8; i += 1024) {
    int r = i >> 3, c = c0 + (i & 7);
    if (c < L) {
      unsigned dst = (unsigned)__cvta_generic_to_shared(tile + i);
      const uint4* src = grad + (long long)(b0 + r) * L + c;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
    }
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int i = t; i < rows; i += 1024) cnt[i] = 0;
  __syncthreads();
  int E = nb * length;
  const long long* ip = idx + (long long)b0 * length;
#pragma unroll 4
  for (int e = t; e < E; e += 1024) atomicAdd(&cnt[(int)ip[e]], 1);
  __syncthreads();
  int per = (rows + 1023) / 1024, lo = min(rows, t * per), hi = min(rows, lo + per);
  int s = 0;
  for (int i = lo; i < hi; i++) s += cnt[i];
  int x = s;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    int o = __shfl_up_sync(~0u, x, d);
    if (lane >= d) x += o;
  }
  if (lane == 31) wsum[w] = x;
  __syncthreads();
  if (w == 0) {
    int q = wsum[lane], q0 = q;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      int o = __shfl_up_sync(~0u, q, d);
      if (lane >= d) q += o;
    }
    wsum[lane] = q - q0;
  }
  __syncthreads();
  int run = wsum[w] + x - s;
  for (int i = lo; i < hi; i++) { int c = cnt[i]; cnt[i] = run; run += c; }
  __syncthreads();
#pragma unroll 4
  for (int e = t; e < E; e += 1024) {
    int v = (int)ip[e];
    int p = atomicAdd(&cnt[v], 1);
    list[p] = ((unsigned)v << 16) | (unsigned)(e / length);
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  pdl_wait();
  int g = t >> 3, c = t & 7;
  int share = ((E + 127) / 128) | 1;
  int i = min(E, g * share), end = min(E, i + share);
  if (i >= end || c0 + c >= L) return;
  int D = L * VEC;
  float* out = acc + (c0 + c) * VEC;
  int cur = list[i] >> 16;
  float a[VEC];
#pragma unroll
  for (int j = 0; j < VEC; j++) a[j] = 0.f;
  auto flush = [&]() {
    float sc = scale[cur];
    float4* o = reinterpret_cast<float4*>(out + (long long)cur * D);
#pragma unroll
    for (int j = 0; j < VEC / 4; j++) {
      atomicAdd(o + j, make_float4(a[4 * j] * sc, a[4 * j + 1] * sc, a[4 * j + 2] * sc, a[4 * j + 3] * sc));
    }
#pragma unroll
    for (int j = 0; j < VEC; j++) a[j] = 0.f;
  };
  for (; i < end; i += 4) {
    unsigned k[4];
    uint4 r[4];
#pragma unroll
    for (int j = 0; j < 4; j++) k[j] = list[min(i + j, end - 1)];
#pragma unroll
    for (int j = 0; j < 4; j++) r[j] = tile[(k[j] & 0xffffu) * 8 + c];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (i + j < end) {
        int v = k[j] >> 16;
        if (v != cur) { flush(); cur = v; }
        vadd(a, r[j]);
      }
    }
  }
  flush();
}

extern "C" __global__ void __launch_bounds__(256) convert_kernel(const float4* __restrict__ acc, uint4* __restrict__ y, long long n) {
  pdl_go();
  pdl_wait();
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) {
    float a[VEC];
#pragma unroll
    for (int j = 0; j < VEC / 4; j++) {
      float4 f = acc[i * (VEC / 4) + j];
      a[4 * j] = f.x; a[4 * j + 1] = f.y; a[4 * j + 2] = f.z; a[4 * j + 3] = f.w;
    }
    y[i] = vpack(a, 1.f);
  }
}
#endif
"""
TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
NAMES = ("init_kernel", "hist_kernel", "alloc_kernel", "scatter_kernel", "reduce_kernel")
SMALL_BYTES = 220 * 1024


@functools.cache
def compiled(kind: int, vec: int):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    defines = [("TYPE", str(kind)), ("VEC", str(vec)), ("UNROLL", str(UNROLL)), ("LIGHT", str(LIGHT)), ("HBLOCKS", str(HBLOCKS)), ("HE", str(HE)), ("HB", str(HB)), ("LU", str(LU))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include, define_macro=defines)
    code = Program(SOURCE, "c++", options).compile("cubin")
    names = NAMES + (("small_kernel", "convert_kernel") if vec > 1 else ())
    return code, {name: code.get_kernel(name) for name in names}


@functools.cache
def kernels(kind: int, vec: int, device: int):
    _, found = compiled(kind, vec)
    if "small_kernel" in found:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        error, dev = driver.cuDeviceGet(device)
        result = driver.cuKernelSetAttribute(attribute, SMALL_BYTES, driver.CUkernel(int(found["small_kernel"].handle)), dev)
        if int(error) or int(result[0]):
            raise RuntimeError(f"shared memory: {error} {result}")
    return found, torch.cuda.get_device_properties(device).multi_processor_count


def go(stream, kernel, grid, block, *args, shmem=0):
    if PDL:
        config = LaunchConfig(grid=grid, block=(block,), shmem_size=shmem, programmatic_stream_serialization=True)
    else:
        config = LaunchConfig(grid=grid, block=(block,), shmem_size=shmem)
    launch(stream, config, kernel, *args)


I = numpy.int32
J = numpy.int64


def up4(n):
    return (n + 3) // 4 * 4


def small_chunk(bags, length, vocabulary, L, sms):
    """Bags per block of the small-vocabulary path, 0 where the general path is better."""
    if not SMALL_PATH or vocabulary > 16384 or bags * length < 8192:
        return 0
    slices = (L + 7) // 8
    chunk = -(-bags // max(1, sms // slices))
    most = (SMALL_BYTES - 4 * vocabulary) // (128 + 4 * length)
    chunk = min(chunk, most, 65535)
    if chunk < 1 or chunk * length < 3 * vocabulary or -(-bags // chunk) > 65535:
        return 0
    return chunk


def run(grad, indices, scale):
    """Must return y.

    grad: (bags, width), the workload's type.
    indices: (bags, length), int64. 0 <= index < vocabulary; repeats count
    scale: (vocabulary), float32.
    y: (vocabulary, width), the workload's type.
    """
    grad, indices, scale = grad.contiguous(), indices.contiguous(), scale.contiguous()
    if indices.dtype != torch.int64:
        indices = indices.long()
    device = grad.device
    bags, D = grad.shape
    length, rows = indices.shape[1], scale.shape[0]
    n = bags * length
    y = torch.empty((rows, D), dtype=grad.dtype, device=device)
    if rows == 0 or D == 0:
        return y
    vec = 16 // grad.element_size()
    if D % vec or grad.data_ptr() % 16 or y.data_ptr() % 16:
        vec = 1
    L = D // vec
    found, sms = kernels(TYPES[grad.dtype], vec, device.index if device.index is not None else torch.cuda.current_device())
    stream = Stream.from_handle(torch.cuda.current_stream(device).cuda_stream)

    chunk = small_chunk(bags, length, rows, L, sms) if vec > 1 else 0
    if chunk:
        wide = grad.dtype == torch.float32
        acc = y if wide else torch.empty((rows, D), dtype=torch.float32, device=device)
        n4 = rows * D // 4
        go(stream, found["init_kernel"], (min(-(-n4 // 256), sms * 8),), 256, acc.data_ptr(), numpy.int64(n4))
        bytes_ = 128 * chunk + 4 * chunk * length + 4 * rows
        go(stream, found["small_kernel"], ((L + 7) // 8, -(-bags // chunk)), 1024, grad.data_ptr(), indices.data_ptr(), scale.data_ptr(),
           acc.data_ptr(), I(bags), I(length), I(rows), I(L), I(chunk), shmem=bytes_)
        if not wide:
            go(stream, found["convert_kernel"], (min(-(-rows * L // 256), sms * 8),), 256, acc.data_ptr(), y.data_ptr(), numpy.int64(rows * L))
        return y

    lg = 3 if L <= 8 else 4 if L <= 16 else 5
    G = 1 << lg
    CT = -(-L // G)
    NG = 256 // G
    hchunk = HMULT * NG
    nlight = min(n, rows)
    nitems = n // (LIGHT + 1) + n // hchunk + 1
    npart = 2 * n // hchunk + 2
    # zeroed: count, glob, done; not zeroed: pairs, list, light, items
    sizes = [up4(rows), 8, up4(npart * CT), up4(2 * n), up4(n), 4 * nlight, 8 * nitems]
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    scratch = torch.empty(starts[-1], dtype=torch.int32, device=device)
    partial = torch.empty(npart * D, dtype=torch.float32, device=device)
    base = scratch.data_ptr()
    count, glob, done, pairs, blist, light, items = (base + 4 * start for start in starts[:-1])
    n4 = starts[3] // 4
    go(stream, found["init_kernel"], (min(-(-n4 // 256), sms * 8),), 256, base, numpy.int64(n4))
    hown, sown = -(-n // (HB * HE)), -(-n // 512)
    # of a large y, rows below z1 are filled during hist and rows below z2 during scatter, by blocks of their own
    row_bytes = D * grad.element_size()
    z1 = z2 = 0
    if n and rows * row_bytes >= ZMIN:
        z1 = min(rows, ZHIST // row_bytes)
        z2 = min(rows, z1 + ZSCATTER // row_bytes)
    if n:
        go(stream, found["hist_kernel"], (hown + (sms * 2 if z1 else 0),), HB, indices.data_ptr(), count, pairs, I(n),
           y.data_ptr(), J(z1 * L), I(hown))
    go(stream, found["alloc_kernel"], (-(-rows // 256),), 256, count, glob, light, items, y.data_ptr(), I(rows), I(L), I(lg), I(hchunk), I(z2))
    if n:
        go(stream, found["scatter_kernel"], (sown + (sms * 4 if z2 > z1 else 0),), 256, pairs, count, blist, I(n), I(length),
           y.data_ptr(), J(z1 * L), J(z2 * L), I(sown))
        go(stream, found["reduce_kernel"], (sms * HBLOCKS,), 256, grad.data_ptr(), scale.data_ptr(), blist, light, items, glob, done,
           partial.data_ptr(), y.data_ptr(), I(D), I(L), I(lg), I(CT))
    return y
