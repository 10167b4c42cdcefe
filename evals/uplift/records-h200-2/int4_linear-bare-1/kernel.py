"""int4_linear: y = x @ weight.T, weight[o, i] = (nibble[o, i] - 8) * scale[o, i / 64].

A cluster of S CTAs owns a block of rows and splits K; each warp of a CTA owns some groups of 64, keeps its part of x in
registers as MMA fragments, and walks over tiles of 16 rows that it brings in with cp.async. The partial sums meet in shared
memory, then over the cluster.
"""

import ctypes
import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;
typedef unsigned char u8;

#if FP16
#define MAGIC 0x64006400u
#define OFFSET 0xE408E408u
#define MMATYPE "f16"
#else
#define MAGIC 0x43004300u
#define OFFSET 0xC308C308u
#define MMATYPE "bf16"
#endif

__device__ __forceinline__ float widen(u16 v) {
#if FP16
  float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v)); return f;
#else
  return __uint_as_float((u32)v << 16);
#endif
}
__device__ __forceinline__ u16 narrow(float f) {
  u16 v;
#if FP16
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(v) : "f"(f));
#else
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(v) : "f"(f));
#endif
  return v;
}
__device__ __forceinline__ void mma(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMATYPE "." MMATYPE ".f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ u32 nib(u32 v) {
  u32 r; asm("lop3.b32 %0, %1, 0x000F000F, %2, 0xEA;" : "=r"(r) : "r"(v), "r"(MAGIC)); return r;
}
__device__ __forceinline__ void copy16(u32 dst, const u8* src) {
#if HINT
#define L2HINT ".L2::128B"
#else
#define L2HINT ""
#endif
  asm volatile("cp.async.cg.shared.global" L2HINT " [%0], [%1], 16;" :: "r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void copy4(u32 dst, const u8* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(dst), "l"(src) : "memory");
}

#define PITCH (32 * (NG | 1))       // bytes of a row of weights in shared memory
#define SW (NG / 2 + 1)             // words of a row of scales
#define STAGE (16 * PITCH + 64 * SW)

// W warps, NG groups of each at most (NF at least), NT tiles of 8 tokens, S CTAs of a cluster, D depth and SLOTS of the ring.
extern "C" __global__ void __launch_bounds__(W * 32, OCC) kernel(
    const u8* __restrict__ x, const u8* __restrict__ packed, const u8* __restrict__ scale, u16* __restrict__ y,
    int tokens, int outs, int groups, int blocks) {
  extern __shared__ __align__(128) u8 smem[];
  u32 base;
  asm("{.reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t;}" : "=r"(base) : "l"(smem));
  const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  const int rank = S > 1 ? blockIdx.x % S : 0, block = blockIdx.x / S;
  const int r0 = (int)((long long)block * outs / blocks), r1 = (int)((long long)(block + 1) * outs / blocks);
  const int slice = (int)((long long)rank * groups / S), gs = (int)((long long)(rank + 1) * groups / S) - slice;
  const int g0 = slice + warp * gs / W, ng = slice + (warp + 1) * gs / W - g0;
  const int tiles = (r1 - r0 + 15) >> 4;
  float* part = (float*)(smem + SLOTS * W * STAGE);
  const int TP = (tokens + 1) & ~1;
  const long long line = (long long)groups * 32;

#if PDL
#if TRIGGER == 0
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
#if PREFETCH
  if (warp == 0) {
    // Only a hint to the L2: nothing is read before the wait.
    const long long from = (r0 * line) & ~15ll, all = (r1 - r0) * line / S & ~15ll;
    const u8* p = packed + from + rank * all;
    const int piece = PREFETCH * 32;
    const long long at = (long long)lane * piece;
    if (at < all) {
      const u32 bytes = (u32)(all - at < piece ? all - at : piece);
      asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(p + at), "r"(bytes) : "memory");
    }
  }
#endif
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif

  const u32 ring = base + warp * STAGE;
  const int wrow = lane >> 2, srow = lane >> 1;
  const u8* wsrc = packed + (r0 + wrow) * line + g0 * 32 + (lane & 3) * 16;
  const u32 wdst = wrow * PITCH + (lane & 3) * 16, sdst = 16 * PITCH + srow * (4 * SW) + (lane & 1) * 4;
  long long sat = ((long long)(r0 + srow) * groups + g0) * 2;
  auto issue = [&](int t, int slot) {
    if (t < tiles) {
      const u32 to = ring + slot * (W * STAGE);
      const int row = r0 + t * 16 + wrow;
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (row + h * 8 < r1) {
          const u8* p = wsrc + h * 8 * line;
#pragma unroll
          for (int i = 0; i < (NG + 1) / 2; ++i)
            if (2 * i + 2 <= NF || 2 * i + ((lane & 3) >> 1) < ng) copy16(to + wdst + h * 8 * PITCH + i * 64, p + i * 64);
        }
      if (r0 + t * 16 + srow < r1) {
        const u8* p = scale + (sat & ~3ll) + (lane & 1) * 4;
        const int bytes = (int)(sat & 3) + 2 * ng;
#pragma unroll
        for (int i = 0; i < (SW + 1) / 2; ++i)
          if ((lane & 1) * 4 + i * 8 < bytes) copy4(to + sdst + i * 8, p + i * 8);
      }
      wsrc += 16 * line;
      sat += 32ll * groups;
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
#pragma unroll
  for (int t = 0; t < D - 1; ++t) issue(t, t);
#if PDL && TRIGGER == 1
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif

  const int g = lane >> 2, c = lane & 3;
  u32 b[NG][NT][8];
  float corr[NG][NT][2];
  {
#pragma unroll
    for (int i = 0; i < NG; ++i) {
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        uint4 u = make_uint4(0, 0, 0, 0), v = u;
        const int token = n * 8 + g;
        if (i < ng && token < tokens) {
          const uint4* p = (const uint4*)(x + ((long long)token * groups + g0 + i) * 128 + c * 32);
          u = p[0];
          v = p[1];
        }
        b[i][n][0] = __byte_perm(u.x, u.z, 0x5410); b[i][n][1] = __byte_perm(u.x, u.z, 0x7632);
        b[i][n][2] = __byte_perm(u.y, u.w, 0x5410); b[i][n][3] = __byte_perm(u.y, u.w, 0x7632);
        b[i][n][4] = __byte_perm(v.x, v.z, 0x5410); b[i][n][5] = __byte_perm(v.x, v.z, 0x7632);
        b[i][n][6] = __byte_perm(v.y, v.w, 0x5410); b[i][n][7] = __byte_perm(v.y, v.w, 0x7632);
      }
    }
#pragma unroll
    for (int i = 0; i < NG; ++i)
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        float d[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
        for (int q = 0; q < 4; ++q) mma(d, OFFSET, OFFSET, OFFSET, OFFSET, b[i][n][2 * q], b[i][n][2 * q + 1]);
        corr[i][n][0] = d[0];
        corr[i][n][1] = d[1];
      }
  }
  u32 sbits = ((u32)(r0 + g) * groups + g0) * 2;
  float* to = part + warp * 16 * TP + g * TP + 2 * c;
  int slot = 0, next = D - 1;
  for (int t = 0; t < tiles; ++t) {
    asm volatile("cp.async.wait_group %0;" :: "n"(D - 2) : "memory");
    __syncwarp();
    issue(t + D - 1, next);
    const u32 from = ring + slot * (W * STAGE);
    const u32 wa = from + g * PITCH + c * 8;
    const u32 sa = from + 16 * PITCH + g * (4 * SW) + (sbits & 3);
    float acc[NT][4];
#pragma unroll
    for (int n = 0; n < NT; ++n) acc[n][0] = acc[n][1] = acc[n][2] = acc[n][3] = 0.f;
    auto one = [&](int i) {
      uint2 lo, hi;
      u16 p, q;
      asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(lo.x), "=r"(lo.y) : "r"(wa + i * 32));
      asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(hi.x), "=r"(hi.y) : "r"(wa + 8 * PITCH + i * 32));
      asm volatile("ld.shared.u16 %0, [%1];" : "=h"(p) : "r"(sa + i * 2));
      asm volatile("ld.shared.u16 %0, [%1];" : "=h"(q) : "r"(sa + 32 * SW + i * 2));
      float d[NT][4];
#pragma unroll
      for (int n = 0; n < NT; ++n) { d[n][0] = d[n][2] = corr[i][n][0]; d[n][1] = d[n][3] = corr[i][n][1]; }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const u32 l = h ? lo.y : lo.x, u = h ? hi.y : hi.x;
        const u32 l0 = nib(l), l1 = nib(l >> 4), l2 = nib(l >> 8), l3 = nib(l >> 12);
        const u32 u0 = nib(u), u1 = nib(u >> 4), u2 = nib(u >> 8), u3 = nib(u >> 12);
#pragma unroll
        for (int n = 0; n < NT; ++n) mma(d[n], l0, u0, l1, u1, b[i][n][4 * h], b[i][n][4 * h + 1]);
#pragma unroll
        for (int n = 0; n < NT; ++n) mma(d[n], l2, u2, l3, u3, b[i][n][4 * h + 2], b[i][n][4 * h + 3]);
      }
      const float fp = widen(p), fq = widen(q);
#pragma unroll
      for (int n = 0; n < NT; ++n) {
        acc[n][0] += fp * d[n][0]; acc[n][1] += fp * d[n][1];
        acc[n][2] += fq * d[n][2]; acc[n][3] += fq * d[n][3];
      }
    };
#pragma unroll
    for (int i = 0; i < NG; ++i) {
      if (i < NF || i < ng) one(i);
    }
#pragma unroll
    for (int n = 0; n < NT; ++n)
      if (n * 8 + 2 * c < TP) {
        *(float2*)(to + n * 8) = make_float2(acc[n][0], acc[n][1]);
        *(float2*)(to + n * 8 + 8 * TP) = make_float2(acc[n][2], acc[n][3]);
      }
    to += W * 16 * TP;
    sbits += 32 * groups;
    if (++slot == D) slot = 0;
    if (++next == D) next = 0;
  }
#if PDL && TRIGGER == 2
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  __syncthreads();
  const int each = 16 * TP, total = tiles * each;
  for (int e = tid; e < total; e += W * 32) {
    const int t = e / each, k = e - t * each;
    float* p = part + t * W * each + k;
    float sum = 0.f;
#pragma unroll
    for (int w = 0; w < W; ++w) sum += p[w * each];
    if (S > 1) {
      *p = sum;
    } else {
      const int r = k / TP, token = k - r * TP, row = r0 + t * 16 + r;
      if (row < r1 && token < tokens) y[(long long)token * outs + row] = narrow(sum);
    }
  }
#if S > 1
  __syncwarp();
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
  const int share = (total + S - 1) / S, end = min(total, (rank + 1) * share);
  u32 pbase = base + SLOTS * W * STAGE, remote[S];
#pragma unroll
  for (int q = 0; q < S; ++q)
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote[q]) : "r"(pbase), "r"(q));
  for (int e = rank * share + tid; e < end; e += W * 32) {
    const int t = e / each, k = e - t * each;
    float sum = 0.f, v[S];
#pragma unroll
    for (int q = 0; q < S; ++q)
      asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v[q]) : "r"(remote[q] + 4 * (t * W * each + k)));
#pragma unroll
    for (int q = 0; q < S; ++q) sum += v[q];
    const int r = k / TP, token = k - r * TP, row = r0 + t * 16 + r;
    if (row < r1 && token < tokens) y[(long long)token * outs + row] = narrow(sum);
  }
  __syncwarp();
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
#endif
}
"""

# Any type and any size, one warp for an output: only where the kernel above does not fit.
SIMPLE = r"""
typedef unsigned short u16;
__device__ __forceinline__ float widen(float v) { return v; }
__device__ __forceinline__ float widen(u16 v) {
#if FP16
  float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v)); return f;
#else
  return __uint_as_float((unsigned)v << 16);
#endif
}
__device__ __forceinline__ void put(float* p, float f) { *p = f; }
__device__ __forceinline__ void put(u16* p, float f) {
#if FP16
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(*p) : "f"(f));
#else
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(*p) : "f"(f));
#endif
}
extern "C" __global__ void __launch_bounds__(128) kernel(
    const TYPE* __restrict__ x, const unsigned char* __restrict__ packed, const TYPE* __restrict__ scale,
    TYPE* __restrict__ y, int tokens, int outs, int groups) {
  const int row = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (row >= outs) return;
  float acc[16];
#pragma unroll
  for (int n = 0; n < 16; ++n) acc[n] = 0.f;
  for (int g = 0; g < groups; ++g) {
    const unsigned v = packed[((long long)row * groups + g) * 32 + lane];
    const float s = widen(scale[(long long)row * groups + g]);
    const float a = ((int)(v & 15) - 8) * s, b = ((int)(v >> 4) - 8) * s;
#pragma unroll
    for (int n = 0; n < 16; ++n)
      if (n < tokens) {
        const TYPE* p = x + ((long long)n * groups + g) * 64 + lane * 2;
        acc[n] += a * widen(p[0]) + b * widen(p[1]);
      }
  }
#pragma unroll
  for (int n = 0; n < 16; ++n)
    if (n < tokens) {
      for (int d = 16; d; d >>= 1) acc[n] += __shfl_xor_sync(~0u, acc[n], d);
      if (lane == 0) put(y + (long long)n * outs + row, acc[n]);
    }
}
"""
TUNE = {}   # overrides, only for measurements


@functools.cache
def build(source, **defines):
    options = ProgramOptions(arch="sm_90a", std="c++17", define_macro=[(k, str(v)) for k, v in defines.items()])
    return Program(source, "c++", options).compile("cubin")


@functools.cache
def compiled(device, room, defines):
    kernel = build(SOURCE, **dict(defines)).get_kernel("kernel")
    if room > 48 * 1024:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (error,) = driver.cuKernelSetAttribute(attribute, room, kernel.handle, device)
        if int(error):
            raise RuntimeError(f"cuKernelSetAttribute: {error}")
    return kernel


@functools.cache
def simple(device, fp16, name):
    return build(SIMPLE, FP16=fp16, TYPE=name).get_kernel("kernel")


def ceil(a, b):
    return -(-a // b)


def chosen(nt, groups):
    """Warps, CTAs of a cluster, CTAs of a multiprocessor, as measured on an H200."""
    if nt == 1 and groups <= 128 and groups % 16 == 0:
        return 16, 1, 1
    if groups <= 72:
        return 8, 1, 1
    if groups <= (144 if nt == 1 else 176):
        return 8, 2, 1
    if nt == 1 and groups <= 288:
        return 16, 2, 1
    return 8, 8, 2


@functools.cache
def plan(tokens, outs, groups, fp16, tune=()):
    """Compile-time parameters, blocks of rows, bytes of shared memory; None where nothing fits."""
    tune = dict(tune)
    nt = 1 if tokens <= 8 else 2
    tp = (tokens + 1) // 2 * 2
    w, s, occ = chosen(nt, groups)
    w, s, occ = tune.get("W", w), tune.get("S", s), tune.get("OCC", occ)
    if groups < s:
        s = 1
    gs = ceil(groups, s)
    ng, nf = ceil(gs, w), (groups // s) // w
    stage = w * (16 * 32 * (ng | 1) + 64 * (ng // 2 + 1))
    if ng > (9 if nt == 1 else 5 if w * occ > 8 else 11):
        return None
    many = tune.get("M", 1)
    limit = 113 * 1024 if occ == 2 else 225 * 1024
    for waves in range(many, 4097):
        blocks = max(1, min(132 * waves // s, ceil(outs, 16)))
        tiles = ceil(ceil(outs, blocks), 16)
        part = tiles * w * 16 * tp * 4
        slots = min(tiles, tune.get("D", 5), (limit - part) // stage)
        if slots >= min(tiles, 2):
            break
    else:
        return None
    depth = max(slots + (slots == tiles), 2)
    defines = {"W": w, "NG": ng, "NF": nf, "NT": nt, "S": s, "FP16": fp16, "OCC": occ, "D": depth, "SLOTS": slots,
               "PDL": tune.get("PDL", 1), "PREFETCH": tune.get("PREFETCH", 64),
               "TRIGGER": tune.get("TRIGGER", 0), "HINT": tune.get("HINT", 0)}
    return tuple(defines.items()), blocks, slots * stage + part


@functools.cache
def config(blocks, s, threads, room, pdl):
    """A launch configuration of cuda.core, None where its version has no programmatic launch."""
    options = {"grid": (blocks, 1, 1), "block": (threads, 1, 1), "shmem_size": room}
    if s > 1:
        options["cluster"] = (s, 1, 1)
    try:
        return LaunchConfig(**options, programmatic_stream_serialization=pdl)
    except TypeError:
        return None


def enqueue(stream, blocks, s, threads, room, pdl, kernel, pointers, sizes):
    made = config(blocks, s, threads, room, pdl)
    if made is not None:
        launch(Stream.from_handle(stream), made, kernel, *pointers, *sizes)
        return
    attributes = []
    if s > 1:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = s, 1, 1
        attributes.append(attribute)
    if pdl:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    wanted = driver.CUlaunchConfig()
    wanted.gridDimX, wanted.gridDimY, wanted.gridDimZ = blocks * s, 1, 1
    wanted.blockDimX, wanted.blockDimY, wanted.blockDimZ = threads, 1, 1
    wanted.sharedMemBytes, wanted.hStream = room, driver.CUstream(stream)
    wanted.attrs, wanted.numAttrs = attributes, len(attributes)
    types = (ctypes.c_void_p,) * len(pointers) + (ctypes.c_int,) * len(sizes)
    values = tuple(pointers) + tuple(int(each) for each in sizes)
    (error,) = driver.cuLaunchKernelEx(wanted, kernel.handle, (values, types), 0)
    if int(error):
        raise RuntimeError(f"cuLaunchKernelEx: {error}")


def aligned(t):
    t = t.contiguous()
    return t if t.data_ptr() % 16 == 0 else t.clone()


def run(x, packed, scale):
    tokens, outs, groups = x.shape[0], packed.shape[0], scale.shape[1]
    x, packed, scale = aligned(x), aligned(packed), aligned(scale)
    y = torch.empty((tokens, outs), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    index, fp16 = x.device.index, int(x.dtype == torch.float16)
    stream = torch.cuda.current_stream(x.device).cuda_stream
    planned = None
    if x.dtype != torch.float32:
        planned = plan(tokens, outs, groups, fp16, tuple(TUNE.items()))
    sizes = numpy.int32(tokens), numpy.int32(outs), numpy.int32(groups)
    pointers = x.data_ptr(), packed.data_ptr(), scale.data_ptr(), y.data_ptr()
    if planned is None:
        kernel = simple(index, fp16, "float" if x.dtype == torch.float32 else "u16")
        made = LaunchConfig(grid=(ceil(outs, 4), 1, 1), block=(128, 1, 1))
        launch(Stream.from_handle(stream), made, kernel, *pointers, *sizes)
        return y
    defines, blocks, room = planned
    values = dict(defines)
    s, w = values["S"], values["W"]
    kernel = compiled(index, room, defines)
    pdl = bool(values["PDL"])
    enqueue(stream, blocks, s, w * 32, room, pdl, kernel, pointers, (*sizes, numpy.int32(blocks)))
    return y
