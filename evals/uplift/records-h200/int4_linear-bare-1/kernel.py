"""int4_linear: y = x @ weight.T, weight[o, i] = (nibble[o, i] - 8) * scale[o, i / 64].

One CTA computes R rows (MT tiles of 16) for all tokens with mma.m16n8k16: weights are the A operand, tokens the columns of
B. Warps split the reduction in units of 128 inputs, so that each lane's 16-byte load of weights belongs to one group and
each input is read once per CTA; the warps' sums are added in shared memory, and those of a cluster's CTAs through
distributed shared memory. Programmatic dependent launch lets the next launch start and prefetch into L2 (never read) early.
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned long long u64;

__device__ __forceinline__ void wait_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void allow_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

#ifdef FALLBACK
// Any type, one warp for an output: float32 (TYPE 0), float16 (1), bfloat16 (2).
__device__ __forceinline__ float get(const void* p, u64 i) {
#if TYPE == 0
  return ((const float*)p)[i];
#elif TYPE == 1
  float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(((const u16*)p)[i])); return f;
#else
  return __uint_as_float((u32)((const u16*)p)[i] << 16);
#endif
}
extern "C" __global__ void __launch_bounds__(128)
entry(const void* x, const u8* packed, const void* scale, void* y, int T, int outs, int G, int R, int S, int NS, int early) {
  wait_previous();
  u64 row = (u64)blockIdx.x * 4 + threadIdx.x / 32;
  int lane = threadIdx.x & 31;
  if (row >= outs) return;
  for (int t = 0; t < T; t++) {
    float sum = 0.f;
    for (u64 j = lane; j < 32ull * G; j += 32) {
      u32 b = packed[row * 32 * G + j];
      float s = get(scale, row * G + j / 32);
      sum += ((float)(b & 15) - 8.f) * s * get(x, (u64)t * 64 * G + 2 * j)
           + ((float)(b >> 4) - 8.f) * s * get(x, (u64)t * 64 * G + 2 * j + 1);
    }
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) {
      u64 i = (u64)t * outs + row;
#if TYPE == 0
      ((float*)y)[i] = sum;
#elif TYPE == 1
      u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(sum)); ((u16*)y)[i] = h;
#else
      u16 h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(sum)); ((u16*)y)[i] = h;
#endif
    }
  }
}
#else

#define RS (MT * 16 + 4)
#ifdef STAGED
#define WS (UNITS * 64 + (UNITS % 2 ? 0 : 64))
#define XS (UNITS * 256 + 16)
#endif

__device__ __forceinline__ uint4 load_stream(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ uint4 load_cached(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ u32 load_scale(const void* p) {
  u16 v;
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(p));
  return v;
}
__device__ __forceinline__ u32 sub2(u32 a, u32 b) { u32 d; asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); return d; }
__device__ __forceinline__ u32 mul2(u32 a, u32 b) { u32 d; asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); return d; }

#ifndef STAGED
struct Unit {
  uint4 w[MT][2];
  uint4 x[NT][4];
  u32 s[MT][2];
};
#endif

__device__ __forceinline__ u32 word(const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

extern "C" __global__ void __launch_bounds__(WARPS * 32, MINB)
entry(const u8* __restrict__ x, const u8* __restrict__ packed, const u8* __restrict__ scale, u16* __restrict__ y,
      int T, int outs, int G, int R, int S, int NS, int early) {
  extern __shared__ __align__(128) float part[];
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, g = lane >> 2, q = lane & 3;
  const int rank = blockIdx.x % S;
  const u64 r0 = (u64)(blockIdx.x / S) * R;
  const int rows = (int)((u64)outs - r0 < (u64)R ? (u64)outs - r0 : (u64)R);
  const int units = (G + 1) / 2;
  const int u0 = (int)((long long)units * rank / S), u1 = (int)((long long)units * (rank + 1) / S);
  const u64 pitch = 32ull * G;

  if (early && lane == 0) {
    int b0 = u0 * 64, b1 = u1 * 64 < (int)pitch ? u1 * 64 : (int)pitch;
    if (b1 > b0)
      for (int r = warp; r < rows; r += WARPS)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::
            "l"((u64)__cvta_generic_to_global(packed + (r0 + r) * pitch + b0)), "r"(b1 - b0) : "memory");
  }
  __syncwarp();

  float acc[MT][NT][4];
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) acc[m][n][e] = 0.f;

#ifdef STAGED
  // Ring of NS slots, each UNITS units of all rows and tokens, filled by bulk copies; then scales; barriers first.
  u8* const base = (u8*)part;
  const int chunks = (u1 - u0 + UNITS - 1) / UNITS;
  const u32 slot = R * WS + T * XS;
  const int g0 = 2 * u0, g1 = 2 * u1 < G ? 2 * u1 : G, ng = g1 - g0;
  const int sg = (ng + 1) / 4 * 4 + 2;  // u16 of a row of scales: an odd number of words
  u16* const sc = (u16*)(base + 1024 + (u64)NS * slot);
  const u32 bars = (u32)__cvta_generic_to_shared(base), ring = bars + 1024;
  if (tid == 0) {
    for (int i = 0; i < NS; i++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bars + i * 8) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  wait_previous();
  allow_next();

  auto fill = [&](int c) {
    const int s = c % NS;
    const int b0 = (g0 + c * UNITS * 2), b1 = b0 + UNITS * 2 < g1 ? b0 + UNITS * 2 : g1;
    const int bytes = (b1 - b0) * 32;
    const u32 bar = bars + s * 8, to = ring + s * slot;
    if (tid == 0)
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes * rows + bytes * 4 * T) : "memory");
    // Tokens first, then rows, dealt to the warps; a warp's lanes take every WARPS-th.
    for (int i = lane * WARPS + warp; i < T + rows; i += 32 * WARPS) {
      const u8* from;
      u32 at, n;
      if (i < T) { from = x + ((u64)i * G + b0) * 128; at = to + R * WS + i * XS; n = bytes * 4; }
      else { from = packed + (r0 + (i - T)) * pitch + (u64)b0 * 32; at = to + (i - T) * WS; n = bytes; }
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
          :: "r"(at), "l"((u64)__cvta_generic_to_global(from)), "r"(n), "r"(bar) : "memory");
    }
  };
  for (int c = 0; c < NS && c < chunks; c++) fill(c);
  {
    const u16* from = (const u16*)scale + r0 * G + g0;
    const int n = rows * ng;
    for (int i0 = tid; i0 < n; i0 += WARPS * 32 * 8) {
      u32 v[8];
#pragma unroll
      for (int j = 0; j < 8; j++) {
        u32 i = i0 + j * WARPS * 32;
        if (i < n) v[j] = load_scale(from + (u64)(i / (u32)ng) * G + i % (u32)ng);
      }
#pragma unroll
      for (int j = 0; j < 8; j++) {
        u32 i = i0 + j * WARPS * 32;
        if (i < n) sc[i / (u32)ng * sg + i % (u32)ng] = (u16)v[j];
      }
    }
  }
  __syncthreads();

  for (int c = 0; c < chunks; c++) {
    const int s = c % NS;
    {
      u32 done;
      do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
            : "=r"(done) : "r"(bars + s * 8), "r"((c / NS) & 1) : "memory");
      } while (!done);
    }
    const u8* at = base + 1024 + s * slot;
#pragma unroll 1
    for (int j = warp; j < UNITS; j += WARPS) {
      const int u = u0 + c * UNITS + j;
      if (u >= u1) break;
      const bool ok = 2 * u + (q >> 1) < G;
      uint4 xv[NT][4];
#pragma unroll
      for (int n = 0; n < NT; n++) {
        const int t = n * 8 + g < T ? n * 8 + g : T - 1;
#pragma unroll
        for (int i = 0; i < 4; i++) {
          xv[n][i] = *(const uint4*)(at + R * WS + t * XS + j * 256 + q * 64 + i * 16);
          if (!ok) xv[n][i] = make_uint4(0, 0, 0, 0);
        }
      }
      u32 b[4][NT][2][2];
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int n = 0; n < NT; n++) {
          b[i][n][0][0] = __byte_perm(xv[n][i].x, xv[n][i].z, 0x5410);
          b[i][n][0][1] = __byte_perm(xv[n][i].x, xv[n][i].z, 0x7632);
          b[i][n][1][0] = __byte_perm(xv[n][i].y, xv[n][i].w, 0x5410);
          b[i][n][1][1] = __byte_perm(xv[n][i].y, xv[n][i].w, 0x7632);
        }
#pragma unroll
      for (int m = 0; m < MT; m++) {
        uint4 w[2];
        u32 sv[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          int r = m * 16 + h * 8 + g;
          r = r < rows ? r : rows - 1;
          w[h] = *(const uint4*)(at + r * WS + j * 64 + q * 16);
          sv[h] = ok ? sc[r * sg + (2 * u + (q >> 1) - g0)] : 0;
          sv[h] = __byte_perm(sv[h], 0, 0x1010);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
          u32 a[2][4];
#pragma unroll
          for (int h = 0; h < 2; h++) {
            u32 v = word(w[h], i);
#pragma unroll
            for (int p = 0; p < 4; p++) {
              u32 t = ((v >> (4 * p)) & 0x000F000Fu) | 0x43004300u;
              a[h][p] = mul2(sub2(t, 0x43084308u), sv[h]);
            }
          }
#pragma unroll
          for (int p = 0; p < 2; p++)
#pragma unroll
            for (int n = 0; n < NT; n++)
              asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                  : "+f"(acc[m][n][0]), "+f"(acc[m][n][1]), "+f"(acc[m][n][2]), "+f"(acc[m][n][3])
                  : "r"(a[0][2 * p]), "r"(a[1][2 * p]), "r"(a[0][2 * p + 1]), "r"(a[1][2 * p + 1]),
                    "r"(b[i][n][p][0]), "r"(b[i][n][p][1]));
        }
      }
    }
    if (c + NS < chunks) {
      __syncthreads();
      fill(c + NS);
    }
  }
  __syncthreads();  // the sums below take the ring's place

#else
  const u8* wp = packed + (r0 + g) * pitch + q * 16;
  const u8* sp = scale + ((r0 + g) * G + (q >> 1)) * 2;
  const u8* xp = x + (u64)g * G * 128 + q * 64;

  wait_previous();
  allow_next();

  auto load = [&](Unit& f, int u) {
    if (u < u1) {
      const bool k = 2 * u + (q >> 1) < G;
#pragma unroll
      for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const bool ok = k && m * 16 + h * 8 + g < rows;
          f.w[m][h] = make_uint4(0, 0, 0, 0);
          f.s[m][h] = 0;
          if (ok) {
            f.w[m][h] = load_stream(wp + (m * 16 + h * 8) * pitch + (u64)u * 64);
            f.s[m][h] = load_scale(sp + ((u64)(m * 16 + h * 8) * G + 2 * (u64)u) * 2);
          }
        }
#pragma unroll
      for (int n = 0; n < NT; n++) {
        const bool ok = k && n * 8 + g < T;
#pragma unroll
        for (int i = 0; i < 4; i++) {
          f.x[n][i] = make_uint4(0, 0, 0, 0);
          if (ok) f.x[n][i] = load_cached(xp + (u64)n * 8 * G * 128 + (u64)u * 256 + i * 16);
        }
      }
    }
  };
  auto compute = [&](Unit& f, int u) {
    if (u < u1) {
      u32 s[MT][2];
#pragma unroll
      for (int m = 0; m < MT; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) s[m][h] = __byte_perm(f.s[m][h], 0, 0x1010);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        u32 b[NT][2][2];
#pragma unroll
        for (int n = 0; n < NT; n++) {
          b[n][0][0] = __byte_perm(f.x[n][i].x, f.x[n][i].z, 0x5410);
          b[n][0][1] = __byte_perm(f.x[n][i].x, f.x[n][i].z, 0x7632);
          b[n][1][0] = __byte_perm(f.x[n][i].y, f.x[n][i].w, 0x5410);
          b[n][1][1] = __byte_perm(f.x[n][i].y, f.x[n][i].w, 0x7632);
        }
#pragma unroll
        for (int m = 0; m < MT; m++) {
          u32 a[2][4];
#pragma unroll
          for (int h = 0; h < 2; h++) {
            u32 v = word(f.w[m][h], i);
#pragma unroll
            for (int p = 0; p < 4; p++) {
              u32 t = ((v >> (4 * p)) & 0x000F000Fu) | 0x43004300u;  // 128 + nibble, exact
              a[h][p] = mul2(sub2(t, 0x43084308u), s[m][h]);
            }
          }
#pragma unroll
          for (int p = 0; p < 2; p++)
#pragma unroll
            for (int n = 0; n < NT; n++)
              asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                  : "+f"(acc[m][n][0]), "+f"(acc[m][n][1]), "+f"(acc[m][n][2]), "+f"(acc[m][n][3])
                  : "r"(a[0][2 * p]), "r"(a[1][2 * p]), "r"(a[0][2 * p + 1]), "r"(a[1][2 * p + 1]),
                    "r"(b[n][p][0]), "r"(b[n][p][1]));
        }
      }
    }
  };

  {
    Unit f[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; d++) load(f[d], u0 + warp + d * WARPS);
    for (int u = u0 + warp; u < u1; u += DEPTH * WARPS) {
#pragma unroll
      for (int d = 0; d < DEPTH; d++) {
        compute(f[d], u + d * WARPS);
        load(f[d], u + (d + DEPTH) * WARPS);
      }
    }
  }

#endif

  // part[warp][token][row]
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        int t = n * 8 + 2 * q + (e & 1), r = m * 16 + g + (e >> 1) * 8;
        if (t < T) part[(warp * T + t) * RS + r] = acc[m][n][e];
      }
  __syncthreads();
  const int total = T * MT * 16;
  if (S == 1) {
    for (int i = tid; i < total; i += WARPS * 32) {
      int t = i / (MT * 16), r = i % (MT * 16);
      float v = 0.f;
#pragma unroll
      for (int w = 0; w < WARPS; w++) v += part[(w * T + t) * RS + r];
      u16 h;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
      if (r < rows) y[(u64)t * outs + r0 + r] = h;
    }
  } else {
    float* local = part + WARPS * T * RS;
    for (int i = tid; i < total; i += WARPS * 32) {
      int t = i / (MT * 16), r = i % (MT * 16);
      float v = 0.f;
#pragma unroll
      for (int w = 0; w < WARPS; w++) v += part[(w * T + t) * RS + r];
      local[i] = v;
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    u32 base = (u32)__cvta_generic_to_shared(local);
    for (int i = rank * WARPS * 32 + tid; i < total; i += S * WARPS * 32) {
      int t = i / (MT * 16), r = i % (MT * 16);
      float v = 0.f;
      for (int c = 0; c < S; c++) {
        u32 p;
        float d;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(p) : "r"(base + i * 4), "r"(c));
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(d) : "r"(p) : "memory");
        v += d;
      }
      u16 h;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
      if (r < rows) y[(u64)t * outs + r0 + r] = h;
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
}
#endif
"""


def check(result):
    if int(result[0]) != 0:
        raise RuntimeError(str(result[0]))
    return result[1] if len(result) > 1 else None


@functools.cache
def cubin(defines: tuple):
    source = "".join(f"#define {name} {number}\n" for name, number in defines) + SOURCE
    return bytes(Program(source, "c++", ProgramOptions(arch="sm_90a", std="c++17")).compile("cubin").code)


@functools.cache
def function(device: int, shared: int, defines: tuple):
    entry = check(driver.cuModuleGetFunction(check(driver.cuModuleLoadData(cubin(defines))), b"entry"))
    if shared > 48 * 1024:
        check(driver.cuFuncSetAttribute(
            entry, driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared))
    return entry


def plan(tokens, outs, groups):
    """MT, WARPS, MINB, rows of a CTA, CTAs of a cluster, DEPTH."""
    tiles = 132
    rows = -(-outs // tiles)
    waves = -(-rows // 64)
    rows = max(8, -(-outs // (tiles * waves)))
    return -(-rows // 16), 8, 1, rows, 1, 2


TYPES = (ctypes.c_void_p,) * 4 + (ctypes.c_int,) * 7


def definitions(chosen, tokens):
    tiles, warps, blocks, rows, split, depth, *staged = chosen
    defines = (("MT", tiles), ("NT", (tokens + 7) // 8), ("WARPS", warps), ("MINB", blocks))
    return defines + ((("STAGED", 1), ("UNITS", depth * warps)) if staged else (("DEPTH", depth),))


@functools.cache
def prepared(device, tokens, outs, groups, chosen, pdl):
    tiles, warps, blocks, rows, split, depth, *staged = chosen
    shared = (warps * tokens * (tiles * 16 + 4) + (tokens * tiles * 16 if split > 1 else 0)) * 4
    defines = definitions(chosen, tokens)
    slots = 0
    if staged:
        units = depth * warps
        slot = rows * (units * 64 + (units % 2 == 0) * 64) + tokens * (units * 256 + 16)
        most = -(-((groups + 1) // 2) // split)
        scales = -(-rows * ((2 * most + 1) // 4 * 4 + 2) * 2 // 16) * 16
        slots = min(-(-most // units), (staged[0] * 1024 - 1024 - scales) // slot, 100)
        if slots < 1:
            raise ValueError("does not fit")
        shared = max(shared, 1024 + slots * slot + scales)
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = -(-outs // rows) * split, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = warps * 32, 1, 1
    config.sharedMemBytes = shared
    attributes = []
    if split > 1:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = split, 1, 1
        attributes.append(attribute)
    if pdl:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return function(device, shared, defines), config, rows, split, slots


@functools.cache
def prepared_fallback(device, dtype, outs):
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = -(-outs // 4), 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 128, 1, 1
    config.numAttrs = 0
    kind = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}[dtype]
    return function(device, 0, (("FALLBACK", 1), ("TYPE", kind))), config, 1, 1, 0


def aligned(tensor):
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


def run(x, packed, scale, chosen=None, pdl=True, prefetch=True):
    tokens, (outs, groups) = x.shape[0], scale.shape
    x, packed, scale = aligned(x), aligned(packed), scale.contiguous()
    y = torch.empty((tokens, outs), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    device = x.device.index
    if x.dtype == torch.bfloat16 and tokens <= 16 and groups < 1 << 24:
        entry, config, rows, split, slots = prepared(
            device, tokens, outs, groups, chosen or plan(tokens, outs, groups), pdl)
    else:
        entry, config, rows, split, slots = prepared_fallback(device, x.dtype, outs)
    config.hStream = driver.CUstream(torch.cuda.current_stream(x.device).cuda_stream)
    values = (x.data_ptr(), packed.data_ptr(), scale.data_ptr(), y.data_ptr(), tokens, outs, groups, rows, split, slots, int(prefetch))
    check(driver.cuLaunchKernelEx(config, entry, (values, TYPES), 0))
    return y
