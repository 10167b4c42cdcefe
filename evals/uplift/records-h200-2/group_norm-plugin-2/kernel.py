"""group_norm in one launch: a thread-block cluster holds a group in registers and shared memory between its two passes."""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Constants of the launch: TYPE, L (elements of a group), HW, NCH (channels of a group), T (threads), RV and SV (vectors of a
// thread in registers and in shared memory), CS (blocks of a cluster), MINB (blocks of a multiprocessor),
// ITER (groups of a cluster, one after the other), STREAM (1: stores that leave the cache first, 2: so do loads), TABLE.
constexpr int VEC = 16 / sizeof(TYPE);
constexpr bool EDGE = L % VEC != 0;          // groups start and end inside of a vector
constexpr unsigned NVMAX = EDGE ? (L + 2u * VEC - 2) / VEC : L / VEC;
constexpr unsigned Q = (NVMAX + CS - 1) / CS;
constexpr bool EVEN = !EDGE && NVMAX % CS == 0;
constexpr int NW = T / 32;
constexpr unsigned HELD = RV + SV;
constexpr int DEPTH = 4;
constexpr int CHUNK = SV > 12 ? (SV + 5) / 6 : 2;  // vectors of a thread that are awaited together

__device__ __forceinline__ uint4 load(const uint4* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ unsigned long long once() {  // for what is read once
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ uint4 load_once(const uint4* p) {
  if (!(STREAM & 2)) return load(p);
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;" : "=r"(v.x), "=r"(v.y), "=r"(v.z),
               "=r"(v.w) : "l"(p), "l"(once()));
  return v;
}
__device__ __forceinline__ void store(uint4* p, uint4 v) {
#if STREAM & 1
  __stcs(p, v);
#else
  *p = v;
#endif
}
template <typename E> struct Words;
template <> struct Words<float> {
  static __device__ __forceinline__ void open(const uint4& v, float* f) {
    f[0] = __uint_as_float(v.x); f[1] = __uint_as_float(v.y); f[2] = __uint_as_float(v.z); f[3] = __uint_as_float(v.w);
  }
  static __device__ __forceinline__ uint4 close(const float* f) {
    return make_uint4(__float_as_uint(f[0]), __float_as_uint(f[1]), __float_as_uint(f[2]), __float_as_uint(f[3]));
  }
  static __device__ __forceinline__ float wide(float x) { return x; }
};
template <> struct Words<__nv_bfloat16> {
  static __device__ __forceinline__ void open(const uint4& v, float* f) {
    const unsigned w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) { f[2 * i] = __uint_as_float(w[i] << 16); f[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u); }
  }
  static __device__ __forceinline__ uint4 close(const float* f) {
    unsigned w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w[i]) : "f"(f[2 * i + 1]), "f"(f[2 * i]));
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
  }
  static __device__ __forceinline__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
};
template <> struct Words<__half> {
  static __device__ __forceinline__ void open(const uint4& v, float* f) {
    const unsigned w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      f[2 * i] = __half2float(__ushort_as_half((unsigned short)(w[i] & 0xffffu)));
      f[2 * i + 1] = __half2float(__ushort_as_half((unsigned short)(w[i] >> 16)));
    }
  }
  static __device__ __forceinline__ uint4 close(const float* f) {
    unsigned w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      w[i] = __half_as_ushort(__float2half_rn(f[2 * i])) | ((unsigned)__half_as_ushort(__float2half_rn(f[2 * i + 1])) << 16);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
  }
  static __device__ __forceinline__ float wide(__half x) { return __half2float(x); }
};
typedef Words<TYPE> W;

__device__ __forceinline__ float total(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

struct Sums {
  float n, pivot, s0, s1, q0, q1;
  // Sums of the differences to one element of the thread's first vector, so that they do not cancel. The smallest one: an
  // outlier would cost the others their digits.
  __device__ __forceinline__ void add(const uint4& v, int lo, int hi, bool first) {
    float f[VEC];
    W::open(v, f);
    if (!EDGE || (lo <= 0 && hi >= VEC)) {
      if (first) {
        pivot = f[0];
#pragma unroll
        for (int j = 1; j < VEC; j++) pivot = fabsf(f[j]) < fabsf(pivot) ? f[j] : pivot;
      }
      n += VEC;
#pragma unroll
      for (int j = 0; j < VEC; j += 2) {
        const float a = f[j] - pivot, b = f[j + 1] - pivot;
        s0 += a; s1 += b; q0 = fmaf(a, a, q0); q1 = fmaf(b, b, q1);
      }
    } else {
      if (first) {
        bool any = false;
#pragma unroll
        for (int j = 0; j < VEC; j++) {
          if (j >= lo && j < hi) { pivot = any && !(fabsf(f[j]) < fabsf(pivot)) ? pivot : f[j]; any = true; }
        }
      }
#pragma unroll
      for (int j = 0; j < VEC; j++) {
        if (j >= lo && j < hi) {
          n += 1.f;
          const float a = f[j] - pivot;
          s0 += a; q0 = fmaf(a, a, q0);
        }
      }
    }
  }
};

__device__ __forceinline__ void wait(int left) {  // until at most so many groups of copies are under way
  switch (left) {
    case 0: asm volatile("cp.async.wait_group 0;" ::: "memory"); break;
    case 1: asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
    case 2: asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
    case 3: asm volatile("cp.async.wait_group 3;" ::: "memory"); break;
    case 4: asm volatile("cp.async.wait_group 4;" ::: "memory"); break;
    case 5: asm volatile("cp.async.wait_group 5;" ::: "memory"); break;
    default: asm volatile("cp.async.wait_group 6;" ::: "memory");
  }
}

struct Span {  // the block's part of a group
  const uint4* xv;
  uint4* yv;
  int head;
  unsigned v0, v1;
  __device__ __forceinline__ Span(const TYPE* x, TYPE* y, unsigned group, unsigned rank) {
    const long long start = (long long)group * L;
    head = EDGE ? (int)(start % VEC) : 0;
    xv = (const uint4*)(x + (start - head));
    yv = (uint4*)(y + (start - head));
    v0 = rank * Q;
    v1 = EVEN ? v0 + Q : min(v0 + Q, EDGE ? (head + L + VEC - 1) / VEC : NVMAX);
  }
  __device__ __forceinline__ bool inside(unsigned k) const {
    return EVEN && (k + 1) * T <= Q ? true : v0 + k * T + threadIdx.x < v1;
  }
  __device__ __forceinline__ unsigned at(unsigned k) const { return v0 + k * T + threadIdx.x; }
  __device__ __forceinline__ int low(unsigned v) const { return head - (int)(v * VEC); }      // first valid element of a vector
  __device__ __forceinline__ int high(unsigned v) const { return (int)(L - v * VEC) + head; }  // the first behind the group
  __device__ __forceinline__ bool edge(unsigned v) const { return EDGE && (low(v) > 0 || high(v) < VEC); }
  template <bool ONCE> __device__ __forceinline__ uint4 fetch(unsigned v) const {
    if (edge(v)) {
      union { uint4 all; TYPE one[VEC]; } u;
      u.all = make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int j = 0; j < VEC; j++) if (j >= low(v) && j < high(v)) u.one[j] = ((const TYPE*)(xv + v))[j];
      return u.all;
    }
    return ONCE ? load_once(xv + v) : load(xv + v);
  }
  __device__ __forceinline__ void copy(unsigned v, uint4* to) const {
    if (edge(v)) *to = fetch<true>(v);
    else {
      const unsigned there = (unsigned)__cvta_generic_to_shared(to);
      if (STREAM & 2) {
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(there), "l"(xv + v), "l"(once()) : "memory");
      } else {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(there), "l"(xv + v) : "memory");
      }
    }
  }
};

extern "C" __global__ void __launch_bounds__(T, MINB)
group_norm(const TYPE* __restrict__ x, const TYPE* __restrict__ weight, const TYPE* __restrict__ bias, TYPE* __restrict__ y,
           float eps, int groups) {
  extern __shared__ uint4 shared[];
  __shared__ float4 parts[(ITER > 1 ? 2 : 1) * CS * NW];
  float2* tables = (float2*)(shared + SV * T);
  const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
  const unsigned rank = CS > 1 ? blockIdx.x % CS : 0;
  const unsigned step = gridDim.x / CS;
  if (CS > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;");

  auto prepare = [&](unsigned group, float2* table) {
    const unsigned c0 = group % 32 * NCH;
#pragma unroll 1
    for (unsigned c = t; c < NCH; c += T) table[c] = make_float2(W::wide(weight[c0 + c]), W::wide(bias[c0 + c]));
  };
  uint4 r[RV ? RV : 1];
  {
    const Span span(x, y, blockIdx.x / CS, rank);
#pragma unroll
    for (int k = 0; k < RV; k++) if (span.inside(k)) r[k] = span.fetch<true>(span.at(k));
#pragma unroll
    for (int k = 0; k < SV; k++) {
      if (span.inside(RV + k)) span.copy(span.at(RV + k), shared + k * T + t);
      if (k % CHUNK == CHUNK - 1 || k == SV - 1) asm volatile("cp.async.commit_group;" ::: "memory");
    }
    if (TABLE) prepare(blockIdx.x / CS, tables);
  }

#pragma unroll 1
  for (int it = 0; it < ITER; it++) {
  const unsigned group = blockIdx.x / CS + it * step;
  if (ITER > 1 && group >= groups) break;
  const Span span(x, y, group, rank);
  float2* table = tables + (ITER > 1 ? it % 2 * NCH : 0);
  float4* part = parts + (ITER > 1 ? it % 2 * CS * NW : 0);
  Sums sums = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
#pragma unroll
  for (int k = 0; k < RV; k++) {
    if (span.inside(k)) { const unsigned v = span.at(k); sums.add(r[k], span.low(v), span.high(v), k == 0); }
  }
  // The unpacked values would take twice the registers until the second pass.
#pragma unroll
  for (int k = 0; k < RV; k++) asm volatile("" : "+r"(r[k].x), "+r"(r[k].y), "+r"(r[k].z), "+r"(r[k].w));
  if (Q > HELD * T) {  // what does not fit is read twice
    unsigned v = span.at(HELD);
    for (; v + (DEPTH - 1) * T < span.v1; v += DEPTH * T) {
      uint4 more[DEPTH];
#pragma unroll
      for (int i = 0; i < DEPTH; i++) more[i] = span.fetch<false>(v + i * T);
#pragma unroll
      for (int i = 0; i < DEPTH; i++) sums.add(more[i], span.low(v + i * T), span.high(v + i * T), false);
    }
    for (; v < span.v1; v += T) sums.add(span.fetch<false>(v), span.low(v), span.high(v), false);
  }
#pragma unroll
  for (int c = 0; c < (SV + CHUNK - 1) / CHUNK; c++) {
    wait((SV + CHUNK - 1) / CHUNK - 1 - c);
#pragma unroll
    for (int k = c * CHUNK; k < SV && k < (c + 1) * CHUNK; k++) {
      if (span.inside(RV + k)) { const unsigned v = span.at(RV + k); sums.add(shared[k * T + t], span.low(v), span.high(v), RV + k == 0); }
    }
  }

  // Of a thread, then of a warp: count, mean and the sum of squared differences to that mean.
  {
    const float s = sums.s0 + sums.s1, n = sums.n, q = sums.q0 + sums.q1;
    const float shift = n > 0.f ? s / n : 0.f;
    float m2 = fmaf(-s, shift, q);
    m2 = m2 < 0.f ? 0.f : m2;
    const float origin = __shfl_sync(~0u, sums.pivot, 0);
    const float count = total(n);
    const float offset = n > 0.f ? (sums.pivot - origin) + shift : 0.f;
    const float mean = count > 0.f ? total(n * offset) / count : 0.f;
    const float d = offset - mean;
    m2 = total(n > 0.f ? fmaf(n * d, d, m2) : 0.f);
    const float4 mine = make_float4(count, origin + mean, m2, 0.f);
    if (CS > 1) {
      __syncwarp();
      if (it == 0) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
      if (lane < CS) {
        unsigned to = (unsigned)__cvta_generic_to_shared(part + rank * NW + warp), there;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(lane));
        asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(there), "f"(mine.x), "f"(mine.y), "f"(mine.z),
                     "f"(mine.w) : "memory");
      }
      __syncwarp();
      asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    } else {
      if (lane == 0) part[warp] = mine;
      __syncthreads();
    }
  }
  float mean, scale;
  {
    constexpr int P = (CS * NW + 31) / 32;
    const float origin = part[0].y;
    float4 p[P];
    float s = 0.f, m2 = 0.f;
#pragma unroll
    for (int i = 0; i < P; i++) {
      p[i] = i * 32 + lane < CS * NW ? part[i * 32 + lane] : make_float4(0.f, 0.f, 0.f, 0.f);
      if (p[i].x > 0.f) s += p[i].x * (p[i].y - origin);
    }
    s = total(s) * (1.f / L);
#pragma unroll
    for (int i = 0; i < P; i++) {
      const float d = (p[i].y - origin) - s;
      if (p[i].x > 0.f) m2 += fmaf(p[i].x * d, d, p[i].z);
    }
    m2 = total(m2);
    mean = origin + s;
    scale = 1.f / sqrtf(m2 * (1.f / L) + eps);
  }

  auto channel = [&](unsigned c) {
    float2 p;
    if (TABLE) p = table[c];
    else p = make_float2(W::wide(weight[group % 32 * NCH + c]), W::wide(bias[group % 32 * NCH + c]));
    p.x *= scale;
    if (sizeof(TYPE) < 4) p.y = fmaf(-mean, p.x, p.y);
    return p;
  };
  auto apply = [&](float f, float2 p) { return fmaf(sizeof(TYPE) < 4 ? f : f - mean, p.x, p.y); };
  auto finish = [&](unsigned v, const uint4& in) {
    float f[VEC];
    W::open(in, f);
    if (HW % VEC == 0) {
      const float2 p = channel(v * VEC / HW);
#pragma unroll
      for (int j = 0; j < VEC; j++) f[j] = apply(f[j], p);
    } else if (HW > VEC) {
      const int e = (int)(v * VEC) - span.head;
      const unsigned c = e < 0 ? 0 : (unsigned)e / HW;
      const int bound = (int)((c + 1) * HW) - e;
      const float2 p = channel(c), next = channel(min(c + 1, (unsigned)NCH - 1));
#pragma unroll
      for (int j = 0; j < VEC; j++) f[j] = apply(f[j], j < bound ? p : next);
    } else {
      const int e = (int)(v * VEC) - span.head;
#pragma unroll
      for (int j = 0; j < VEC; j++) f[j] = apply(f[j], channel(min((unsigned)max(e + j, 0) / HW, (unsigned)NCH - 1)));
    }
    union { uint4 all; TYPE one[VEC]; } u;
    u.all = W::close(f);
    if (span.edge(v)) {
#pragma unroll
      for (int j = 0; j < VEC; j++) if (j >= span.low(v) && j < span.high(v)) ((TYPE*)(span.yv + v))[j] = u.one[j];
    } else {
      store(span.yv + v, u.all);
    }
  };
  if (Q > HELD * T) {
    unsigned v = span.at(HELD);
    for (; v + (DEPTH - 1) * T < span.v1; v += DEPTH * T) {
      uint4 more[DEPTH];
#pragma unroll
      for (int i = 0; i < DEPTH; i++) more[i] = span.fetch<false>(v + i * T);
#pragma unroll
      for (int i = 0; i < DEPTH; i++) finish(v + i * T, more[i]);
    }
    for (; v < span.v1; v += T) finish(v, span.fetch<false>(v));
  }
  if (ITER > 1 && it + 1 < ITER && group + step < groups) {  // each slot is filled again as soon as it has been read
    const Span next(x, y, group + step, rank);
#pragma unroll
    for (int k = 0; k < RV; k++) {
      if (span.inside(k)) finish(span.at(k), r[k]);
      if (next.inside(k)) r[k] = next.fetch<true>(next.at(k));
    }
#pragma unroll
    for (int k = 0; k < SV; k++) {
      if (span.inside(RV + k)) finish(span.at(RV + k), shared[k * T + t]);
      if (next.inside(RV + k)) next.copy(next.at(RV + k), shared + k * T + t);
      if (k % CHUNK == CHUNK - 1 || k == SV - 1) asm volatile("cp.async.commit_group;" ::: "memory");
    }
    if (TABLE) prepare(group + step, tables + (it + 1) % 2 * NCH);
  } else {
#pragma unroll
    for (int k = 0; k < RV; k++) if (span.inside(k)) finish(span.at(k), r[k]);
#pragma unroll 4
    for (int k = 0; k < SV; k++) if (span.inside(RV + k)) finish(span.at(RV + k), shared[k * T + t]);
  }
  }
}
"""
TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float32: "float", torch.float16: "__half"}
GROUPS = 32


def ceil(a: int, b: int) -> int:
    return -(-a // b)


@functools.cache
def cubin(name: str, elements: int, pixels: int, threads: int, rv: int, sv: int, cluster: int, blocks: int, stream: int,
          rounds: int):
    channels = elements // pixels
    constants = {
        "TYPE": name, "L": f"{elements}u", "HW": f"{pixels}u", "NCH": channels, "T": threads, "RV": rv, "SV": sv, "CS": cluster,
        "MINB": blocks, "TABLE": int(channels <= 1024), "STREAM": stream, "ITER": rounds,
    }
    source = "".join(f"#define {key} {value}\n" for key, value in constants.items()) + SOURCE
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    return Program(source, "c++", ProgramOptions(arch="sm_90a", std="c++17", include_path=include)).compile("cubin")


@functools.cache
def compiled(device: int, name: str, elements: int, pixels: int, setting: tuple):
    threads, rv, sv, cluster, blocks, stream, rounds = setting
    kernel = cubin(name, elements, pixels, *setting).get_kernel("group_norm")
    channels = elements // pixels
    shared = 16 * sv * threads + (8 * channels * min(rounds, 2) if channels <= 1024 else 0)
    attribute = driver.CUfunction_attribute
    pairs = [(attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)] if shared > 40 * 1024 else []
    if cluster > 8:
        pairs.append((attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
    for key, value in pairs:
        (error,) = driver.cuKernelSetAttribute(key, value, kernel.handle, device)
        if error != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{key}: {error}")
    return kernel, shared


def resident(threads: int, rv: int, sv: int, spare: int) -> int:
    """Blocks of a multiprocessor by registers and shared memory, with so many registers beside the held vectors."""
    registers = max(32, ceil(4 * rv + spare, 8) * 8)
    return max(1, min(2048 // threads, 65536 // (threads * registers), 227 * 1024 // (16 * sv * threads + 4096), 24))


@functools.cache
def choose(images: int, elements: int, pixels: int, size: int) -> tuple:
    """Threads, vectors in registers and in shared memory, blocks of a cluster and of a multiprocessor, hints, rounds.

    Measured on an H200: one block holds a group of up to 128 KiB, parts of 64 KiB are best beyond, and a cluster is worth its
    barriers for small groups only where they would leave multiprocessors idle.
    """
    lane = 16 // size
    vectors = elements // lane if elements % lane == 0 else (elements + 2 * lane - 2) // lane
    groups = images * GROUPS
    hints = 1 if groups * elements * size < 48 << 20 else 0
    spare = 24 if pixels % lane == 0 else 36
    cluster = 1
    few = 256 if groups <= 32 else 128
    while cluster < 16 and (
        vectors > 8192 * cluster or (vectors > 2048 and groups * cluster < few and vectors >= 1280 * cluster)
    ):
        cluster *= 2
    if vectors > 8192 and groups * cluster > 132:
        while cluster < 16 and vectors > 4096 * cluster:
            cluster *= 2
    part = ceil(vectors, cluster)
    blocks = groups * cluster
    if part > 8192:
        return 512, 16, 16, cluster, 1, hints, 1
    if blocks <= 132 and part > 2560:
        return 512, ceil(part, 512), 0, cluster, 1, hints, 1
    if vectors > 8192 and part <= 4096:
        each = ceil(part, 256)
        return 256, min(each, 8), max(each - 8, 0), cluster, 4, hints, 1
    if part > 2560:
        each = ceil(part, 512)
        rv, sv = (0, each) if each <= 13 else (8, each - 8)
        return 512, rv, sv, cluster, 2, hints, 1
    threads = 256 if part > (1280 if blocks > 528 else 512) else 128 if part > 128 else 64 if part > 32 else 32
    each = ceil(part, threads)
    rv, sv = (0, each) if each >= 4 and blocks >= 200 and cluster == 1 else (each, 0)
    return threads, rv, sv, cluster, resident(threads, rv, sv, spare), hints, 1


def run(x, weight, bias, eps, setting=None):
    images, channels, height, width = x.shape
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    if x.data_ptr() % 16:
        x = x.clone()
    pixels = height * width
    elements = channels // GROUPS * pixels
    setting = setting or choose(images, elements, pixels, x.element_size())
    threads, _, _, cluster, _, _, rounds = setting
    kernel, shared = compiled(x.device.index, TYPES[x.dtype], elements, pixels, setting)
    stream = Stream.from_handle(torch.cuda.current_stream(x.device).cuda_stream)
    groups = images * GROUPS
    grid = ceil(groups, rounds)
    if cluster > 1:
        config = LaunchConfig(grid=(grid,), cluster=(cluster,), block=(threads,), shmem_size=shared)
    else:
        config = LaunchConfig(grid=(grid,), block=(threads,), shmem_size=shared)
    launch(stream, config, kernel, x.data_ptr(), weight.data_ptr(), bias.data_ptr(), y.data_ptr(), numpy.float32(eps),
           numpy.int32(groups))
    return y
