"""int4_linear on Hopper: split-K over a thread block cluster, tensor cores, exact nibbles, scales on the fp32 accumulators."""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;
typedef unsigned char u8;
#ifndef MT
#define MT 4
#endif
#ifndef NW
#define NW 8
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef MINB
#define MINB 2
#endif
#ifndef PREFETCH
#define PREFETCH 1
#endif
#define ROWS (16 * MT)
#define THREADS (32 * NW)
#define CHUNK (NW * 6)
#define PITCH (ROWS + 4)
#define TPR (THREADS / ROWS)

__device__ __forceinline__ uint2 ldw(const u8* p) {
  uint2 v;
  asm volatile("ld.global.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}
__device__ __forceinline__ uint4 ldx(const u16* p) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ u32 dq(u32 v) {
  u32 r;
  asm("lop3.b32 %0, %1, 0x000F000F, 0x43004300, 0xEA;" : "=r"(r) : "r"(v));
  asm("sub.rn.bf16x2 %0, %0, %1;" : "+r"(r) : "r"(0x43084308));
  return r;
}
__device__ __forceinline__ void mma(float* c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ u16 to_bf16(float f) {
  u16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(f));
  return r;
}

template <int NT>
__device__ __forceinline__ void body(const u16* x, const u8* packed, const u16* scale, u16* y, int tokens, int outs,
                                     int groups, int split) {
  __shared__ __align__(16) u16 ssc[CHUNK * ROWS];
  __shared__ float red[NW][NT * 8][PITCH];
  __shared__ float part[ROWS * NT * 8 + 16];

  const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  const int rank = blockIdx.x % split;
  const long long row0 = (long long)(blockIdx.x / split) * ROWS;
  const int left = (int)(outs - row0 < ROWS ? outs - row0 : ROWS) - 1;
  const int first = (int)((long long)groups * rank / split), last = (int)((long long)groups * (rank + 1) / split);
  const u8* wbase = packed + row0 * groups * 32;
  const u16* sbase = scale + row0 * groups;

  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#if PREFETCH
  if (last - first <= 24) {
    // Only into L2, which is coherent: safe before the wait for the previous kernel.
    const u8* at = wbase + (long long)min(tid / TPR, left) * groups * 32;
    const int stop = min(last, first + 64) * 32;
    for (int c = first * 32 + (tid % TPR) * 128; c < stop + 96; c += TPR * 128)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(at + min(c, stop - 32)));
  }
#endif
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");

  u32 woff[2 * MT];
#pragma unroll
  for (int j = 0; j < 2 * MT; j++) woff[j] = (u32)min(g + 8 * j, left) * (u32)groups * 32u + t * 8;
  u32 xoff[NT];
#pragma unroll
  for (int n = 0; n < NT; n++) xoff[n] = (u32)min(g + 8 * n, tokens - 1) * (u32)groups * 64u + t * 16;

  float acc[MT][NT][4];
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) acc[m][n][i] = 0.f;

  uint2 w[DEPTH][2 * MT];
  uint4 xv[DEPTH][NT][2];

  auto load = [&](int b, int gi) {
    const u8* wp = wbase + (long long)gi * 32;
    const u16* xp = x + (long long)gi * 64;
#pragma unroll
    for (int j = 0; j < 2 * MT; j++) w[b][j] = ldw(wp + woff[j]);
#pragma unroll
    for (int n = 0; n < NT; n++) {
      if (g + 8 * n < tokens) {
        xv[b][n][0] = ldx(xp + xoff[n]);
        xv[b][n][1] = ldx(xp + xoff[n] + 8);
      } else {
        xv[b][n][0] = make_uint4(0, 0, 0, 0);
        xv[b][n][1] = make_uint4(0, 0, 0, 0);
      }
    }
  };
  auto compute = [&](int b, int gl) {
    u32 sw[MT];
    const u16* sp = ssc + gl * ROWS + g * (2 * MT);
    if (MT == 4) {
      uint4 s = *(const uint4*)sp;
      sw[0] = s.x; sw[1] = s.y; sw[MT > 2 ? 2 : 0] = s.z; sw[MT > 2 ? 3 : 0] = s.w;
      if (MT <= 2) sw[0] = s.x;
    } else if (MT == 2) {
      uint2 s = *(const uint2*)sp;
      sw[0] = s.x; sw[MT > 1 ? 1 : 0] = s.y;
    } else {
#pragma unroll
      for (int m = 0; m < MT; m++) sw[m] = ((const u32*)sp)[m];
    }
    u32 b0[NT][4], b1[NT][4];
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int q = 0; q < 2; q++) {
        uint4 v = xv[b][n][q];
        b0[n][2 * q] = __byte_perm(v.x, v.z, 0x5410);
        b1[n][2 * q] = __byte_perm(v.x, v.z, 0x7632);
        b0[n][2 * q + 1] = __byte_perm(v.y, v.w, 0x5410);
        b1[n][2 * q + 1] = __byte_perm(v.y, v.w, 0x7632);
      }
#pragma unroll
    for (int m = 0; m < MT; m++) {
      float p[NT][4];
#pragma unroll
      for (int n = 0; n < NT; n++) p[n][0] = p[n][1] = p[n][2] = p[n][3] = 0.f;
#pragma unroll
      for (int q = 0; q < 2; q++) {
        u32 lo = q ? w[b][2 * m].y : w[b][2 * m].x, hi = q ? w[b][2 * m + 1].y : w[b][2 * m + 1].x;
        u32 a0 = dq(lo), a2 = dq(lo >> 4), a1 = dq(hi), a3 = dq(hi >> 4);
#pragma unroll
        for (int n = 0; n < NT; n++) mma(p[n], a0, a1, a2, a3, b0[n][2 * q], b1[n][2 * q]);
        a0 = dq(lo >> 8), a2 = dq(lo >> 12), a1 = dq(hi >> 8), a3 = dq(hi >> 12);
#pragma unroll
        for (int n = 0; n < NT; n++) mma(p[n], a0, a1, a2, a3, b0[n][2 * q + 1], b1[n][2 * q + 1]);
      }
      float s0 = __uint_as_float(sw[m] << 16), s1 = __uint_as_float(sw[m] & 0xffff0000u);
#pragma unroll
      for (int n = 0; n < NT; n++) {
        acc[m][n][0] += s0 * p[n][0];
        acc[m][n][1] += s0 * p[n][1];
        acc[m][n][2] += s1 * p[n][2];
        acc[m][n][3] += s1 * p[n][3];
      }
    }
  };

  asm volatile("griddepcontrol.wait;" ::: "memory");

  for (int base = first; base < last; base += CHUNK) {
    const int end = min(base + CHUNK, last), count = end - base;
    int gi = base + warp;
#pragma unroll
    for (int d = 0; d < DEPTH; d++)
      if (gi + d * NW < end) load(d, gi + d * NW);
    if (base != first) __syncthreads();
    {
      const int r = tid / TPR, c0 = tid % TPR;
      const u16* sp = sbase + (long long)min(r, left) * groups + base;
      u16* to = ssc + (r & 7) * (2 * MT) + (r >> 3);
      for (int c = c0; c < count; c += 6 * TPR) {
        u16 v[6];
#pragma unroll
        for (int k = 0; k < 6; k++)
          if (c + k * TPR < count) v[k] = sp[c + k * TPR];
#pragma unroll
        for (int k = 0; k < 6; k++)
          if (c + k * TPR < count) to[(c + k * TPR) * ROWS] = v[k];
      }
    }
    __syncthreads();
    for (; gi < end; gi += NW * DEPTH) {
#pragma unroll
      for (int d = 0; d < DEPTH; d++) {
        if (gi + d * NW < end) {
          compute(d, gi + d * NW - base);
          if (gi + (d + DEPTH) * NW < end) load(d, gi + (d + DEPTH) * NW);
        }
      }
    }
  }

#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++) {
      float* at = &red[warp][n * 8 + 2 * t][m * 16 + g];
      at[0] = acc[m][n][0];
      at[PITCH] = acc[m][n][1];
      at[8] = acc[m][n][2];
      at[PITCH + 8] = acc[m][n][3];
    }
  __syncthreads();
  const int total = tokens * ROWS, share = (total + split - 1) / split;
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  const u32 home = (u32)__cvta_generic_to_shared(part);
  for (int f = tid; f < total; f += THREADS) {
    int tok = f / ROWS, r = f % ROWS;
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < NW; k++) sum += red[k][tok][r];
    if (split == 1) {
      if (r <= left) y[(long long)tok * outs + row0 + r] = to_bf16(sum);
    } else {
      int owner = f / share;
      u32 there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                   : "=r"(there) : "r"(home + 4u * (u32)(rank * share + f - owner * share)), "r"(owner));
      asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(sum) : "memory");
    }
  }
  if (split == 1) return;
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  for (int i = tid; i < share; i += THREADS) {
    int f = rank * share + i, tok = f / ROWS, r = f % ROWS;
    if (f >= total) break;
    float sum = 0.f;
    for (int k = 0; k < split; k++) sum += part[k * share + i];
    if (r <= left) y[(long long)tok * outs + row0 + r] = to_bf16(sum);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, MINB)
    linear8(const u16* x, const u8* packed, const u16* scale, u16* y, int tokens, int outs, int groups, int split) {
  body<1>(x, packed, scale, y, tokens, outs, groups, split);
}
extern "C" __global__ void __launch_bounds__(THREADS, MINB)
    linear16(const u16* x, const u8* packed, const u16* scale, u16* y, int tokens, int outs, int groups, int split) {
  body<2>(x, packed, scale, y, tokens, outs, groups, split);
}

// Plain kernels for other types: a warp an output.
template <int KIND>
__device__ __forceinline__ float get(const void* p, long long i) {
  if (KIND == 2) return ((const float*)p)[i];
  u16 h = ((const u16*)p)[i];
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
template <int KIND>
__device__ __forceinline__ void plain(const void* x, const u8* packed, const void* scale, void* y, int tokens,
                                      int outs, int groups) {
  int row = blockIdx.x * 4 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (row >= outs) return;
  float acc[16];
#pragma unroll
  for (int k = 0; k < 16; k++) acc[k] = 0.f;
  for (int gi = 0; gi < groups; gi++) {
    u32 b = packed[((long long)row * groups + gi) * 32 + lane];
    float s = get<KIND>(scale, (long long)row * groups + gi);
    float w0 = (float)((int)(b & 15) - 8) * s, w1 = (float)((int)(b >> 4) - 8) * s;
#pragma unroll
    for (int k = 0; k < 16; k++)
      if (k < tokens) {
        long long at = ((long long)k * groups + gi) * 64 + 2 * lane;
        acc[k] += w0 * get<KIND>(x, at) + w1 * get<KIND>(x, at + 1);
      }
  }
#pragma unroll
  for (int k = 0; k < 16; k++)
    if (k < tokens) {
      float v = acc[k];
      for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
      if (lane == 0) {
        long long at = (long long)k * outs + row;
        if (KIND == 2) ((float*)y)[at] = v;
        else {
          u16 h;
          asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
          ((u16*)y)[at] = h;
        }
      }
    }
}
extern "C" __global__ void plain16(const void* x, const u8* packed, const void* scale, void* y, int tokens, int outs,
                                   int groups) {
  plain<1>(x, packed, scale, y, tokens, outs, groups);
}
extern "C" __global__ void plain32(const void* x, const u8* packed, const void* scale, void* y, int tokens, int outs,
                                   int groups) {
  plain<2>(x, packed, scale, y, tokens, outs, groups);
}
"""
# MT, NW, DEPTH, MINB of each build, and its weight in the choice for up to 8 and up to 16 tokens.
BUILDS = {(4, 8, 1, 2): (1.25, 1.25), (2, 8, 3, 2): (1.0, 1.0), (2, 8, 2, 3): (1.0, 0.6)}
TYPES = (ctypes.c_void_p,) * 4 + (ctypes.c_int,) * 4


def check(result):
    if int(result[0]) != 0:
        raise RuntimeError(str(result[0]))
    return result[1] if len(result) > 1 else None


def cubin(build):
    defines = "".join(f"#define {name} {value}\n" for name, value in zip(("MT", "NW", "DEPTH", "MINB"), build))
    options = ProgramOptions(arch="sm_90a", std="c++17")
    return Program(defines + SOURCE, "c++", options).compile("cubin").code


@functools.cache
def kernels(device: int):
    """All kernels of all builds, loaded in the current context."""
    found, libraries = {}, []
    for build in BUILDS:
        library = check(driver.cuLibraryLoadData(cubin(build), [], [], 0, [], [], 0))
        libraries.append(library)
        for name in ("linear8", "linear16", "plain16", "plain32"):
            kernel = check(driver.cuLibraryGetKernel(library, name.encode()))
            found[build, name] = found[name] = check(driver.cuKernelGetFunction(kernel))
    sms = torch.cuda.get_device_properties(device).multi_processor_count
    return found, sms, libraries


def attributes(cluster: int, pdl: bool):
    made = []
    if cluster > 1:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        value = driver.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster, 1, 1
        one.value = value
        made.append(one)
    if pdl:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        value = driver.CUlaunchAttributeValue()
        value.programmaticStreamSerializationAllowed = 1
        one.value = value
        made.append(one)
    return made


# Share of the slots that clusters of a size fill at most.
CAPS = (1.0, 0.985, 0.92, 0.9, 0.85, 0.85, 0.85, 0.85)


def choose(tokens: int, outs: int, groups: int, sms: int):
    """The build, and how many thread blocks of a cluster share the inputs of a block of rows: the fullest single wave."""
    best, score = ((4, 8, 1, 2) if tokens > 8 else (2, 8, 2, 3), 1), 0.0
    for build, weight in BUILDS.items():
        blocks = -(-outs // (16 * build[0]))
        for split in range(1, 9):
            if split > 1 and split * build[1] > groups + build[1] // 2:
                break
            share = blocks * split / (build[3] * sms)
            full = share * weight[tokens > 8]
            if share <= CAPS[split - 1] and full > score:
                best, score = (build, split), full
    return best


@functools.lru_cache(maxsize=512)
def plan(device, tokens, outs, groups):
    found, sms, _ = kernels(device)
    build, split = choose(tokens, outs, groups, sms)
    blocks = -(-outs // (16 * build[0]))
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = blocks * split, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 32 * build[1], 1, 1
    config.sharedMemBytes = 0
    config.attrs = attributes(split, True)
    config.numAttrs = len(config.attrs)
    return config, found[build, "linear8" if tokens <= 8 else "linear16"], split


def ready(tensor):
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


def run(x, packed, scale):
    tokens, groups, outs = x.shape[0], scale.shape[1], scale.shape[0]
    x, packed, scale = ready(x), ready(packed), ready(scale)
    y = torch.empty((tokens, outs), dtype=x.dtype, device=x.device)
    if tokens == 0 or outs == 0:
        return y
    device = x.device.index
    stream = torch.cuda.current_stream(x.device).cuda_stream
    pointers = (x.data_ptr(), packed.data_ptr(), scale.data_ptr(), y.data_ptr())
    if x.dtype == torch.bfloat16:
        config, function, split = plan(device, tokens, outs, groups)
        config.hStream = stream
        check(driver.cuLaunchKernelEx(config, function, ((*pointers, tokens, outs, groups, split), TYPES), 0))
    else:
        function = kernels(device)[0]["plain32" if x.dtype == torch.float32 else "plain16"]
        check(
            driver.cuLaunchKernel(
                function, -(-outs // 4), 1, 1, 128, 1, 1, 0, stream, ((*pointers, tokens, outs, groups), TYPES[:7]), 0
            )
        )
    return y
