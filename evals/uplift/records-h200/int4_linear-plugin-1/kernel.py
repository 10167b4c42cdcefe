"""int4_linear: y = x @ weight.T with weight[o, i] = (nibble[o, i] - 8) * scale[o, i / 64].

The rows of the weights are M of mma.m16n8k16 and the tokens N. A nibble becomes the exact bf16 integer (nibble - 8) in a
register; each group of 64 is summed by the tensor cores in fp32, then multiplied by its scale in fp32. The warps of a block
(and the blocks of a cluster) split K and add through shared memory.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

SOURCE = r"""
typedef unsigned u32;
typedef unsigned long long u64;

__device__ __forceinline__ uint4 load16(const void* p) {  // weights: each byte is used once
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ uint2 load8(const void* p) {
  uint2 v;
  asm("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}
__device__ __forceinline__ u32 nibbles(u32 w) {  // nibbles 0 and 4 minus 8, as two bf16; exact
  u32 h, r;
  asm("lop3.b32 %0, %1, 0x000f000f, 0x43004300, 0xea;" : "=r"(h) : "r"(w));
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(h), "r"(0x43084308u));
  return r;
}
__device__ __forceinline__ void mma(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ float wide(unsigned short v) { return __uint_as_float((u32)v << 16); }
__device__ __forceinline__ unsigned short narrow(float v) {
  unsigned short r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}
template <int COL> struct Words;
template <> struct Words<0> { u32 at[2]; __device__ __forceinline__ void load(const unsigned char* p) { uint2 v = load8(p); at[0] = v.x; at[1] = v.y; } };
template <> struct Words<1> { u32 at[4]; __device__ __forceinline__ void load(const unsigned char* p) { uint4 v = load16(p); at[0] = v.x; at[1] = v.y; at[2] = v.z; at[3] = v.w; } };

// A unit is one group, of which a lane of a quad holds 8 bytes a row (COL = 0), or two groups, of which it holds 16 bytes a
// row (COL = 1): lanes 0 and 1 then have the first group, 2 and 3 the second. Columns 0 to 3 of x are tokens with the
// second group's inputs set to 0, columns 4 to 7 the same tokens with the first group's, so the two sums stay apart.
template <int NT, int MT> struct Source {
  const unsigned char* w[MT][2];
  const unsigned short* s[MT][2];
  const unsigned short* x[NT];
  int limit, limit_x[NT];  // the first unit that the lane does not have
  template <int N> __device__ __forceinline__ void advance(int units) {
#pragma unroll
    for (int m = 0; m < MT; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) w[m][h] += units * (16 * N), s[m][h] += units * (N / 2);
#pragma unroll
    for (int n = 0; n < NT; ++n) x[n] += units * (32 * N);
  }
};
template <int NT, int MT, int U, int COL> struct Stage {
  static constexpr int N = COL ? 4 : 2;
  Words<COL> w[U][MT][2];
  uint4 x[U][NT][N];
  unsigned short s[U][MT][2];

  // Weights without a valid unit stay undefined: each of their values is a small integer, and x is 0 there.
  __device__ __forceinline__ void load(const Source<NT, MT>& from, int ahead, int unit) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const int at = ahead * U + u;
#pragma unroll
      for (int m = 0; m < MT; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          if (unit + at < from.limit) w[u][m][h].load(from.w[m][h] + at * (16 * N));
#pragma unroll
      for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int i = 0; i < N; ++i)
          x[u][n][i] = unit + at < from.limit_x[n] ? __ldg(reinterpret_cast<const uint4*>(from.x[n] + at * (32 * N)) + i) : make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int m = 0; m < MT; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) s[u][m][h] = unit + at < from.limit ? __ldg(from.s[m][h] + at * (N / 2)) : (unsigned short)0;
    }
  }

  __device__ __forceinline__ void add(float (&acc)[MT][NT][4]) const {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      float c[MT][NT][4] = {};
#pragma unroll
      for (int i = 0; i < N; ++i) {
        u32 b[NT][4];
#pragma unroll
        for (int n = 0; n < NT; ++n) {
          const uint4 v = x[u][n][i];  // inputs (0, 1), (2, 3), (4, 5), (6, 7) become (0, 4), (1, 5), (2, 6), (3, 7)
          b[n][0] = __byte_perm(v.x, v.z, 0x5410), b[n][1] = __byte_perm(v.x, v.z, 0x7632);
          b[n][2] = __byte_perm(v.y, v.w, 0x5410), b[n][3] = __byte_perm(v.y, v.w, 0x7632);
        }
#pragma unroll
        for (int m = 0; m < MT; ++m) {
          const u32 p = w[u][m][0].at[i], q = w[u][m][1].at[i];
          const u32 p0 = nibbles(p), p1 = nibbles(p >> 4), q0 = nibbles(q), q1 = nibbles(q >> 4);
#pragma unroll
          for (int n = 0; n < NT; ++n) mma(c[m][n], p0, q0, p1, q1, b[n][0], b[n][1]);
          const u32 p2 = nibbles(p >> 8), p3 = nibbles(p >> 12), q2 = nibbles(q >> 8), q3 = nibbles(q >> 12);
#pragma unroll
          for (int n = 0; n < NT; ++n) mma(c[m][n], p2, q2, p3, q3, b[n][2], b[n][3]);
        }
      }
#pragma unroll
      for (int m = 0; m < MT; ++m) {
        const float lo = wide(s[u][m][0]), hi = wide(s[u][m][1]);
#pragma unroll
        for (int n = 0; n < NT; ++n) {
          acc[m][n][0] = fmaf(c[m][n][0], lo, acc[m][n][0]), acc[m][n][1] = fmaf(c[m][n][1], lo, acc[m][n][1]);
          acc[m][n][2] = fmaf(c[m][n][2], hi, acc[m][n][2]), acc[m][n][3] = fmaf(c[m][n][3], hi, acc[m][n][3]);
        }
      }
    }
  }
};

// NT tiles of columns, MT tiles of 16 rows a warp, WM x WK warps over rows and K, U units a stage, ST stages in registers,
// CL blocks of a cluster over K, PF: the block's weights are prefetched into L2 at once.
template <int NT, int MT, int WM, int WK, int U, int ST, int COL, int CL, int PF, int MB>
__global__ void __launch_bounds__(32 * WM * WK, MB)
int4_linear(const unsigned short* __restrict__ x, const unsigned char* __restrict__ packed,
            const unsigned short* __restrict__ scale, unsigned short* __restrict__ y, int tokens, int outs, int groups) {
  constexpr int ROWS = 16 * MT * WM, PAD = ROWS + 4, COLS = 8 * NT, THREADS = 32 * WM * WK;
  constexpr int TOKENS = COL ? 4 * NT : 8 * NT, OWN = ROWS / CL;
  extern __shared__ float red[];                    // [WK][COLS][PAD], then the inbox [CL][TOKENS][OWN]
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int wm = warp % WM, wk = warp / WM;
  const int rank = CL > 1 ? blockIdx.x % CL : 0, tile = CL > 1 ? blockIdx.x / CL : blockIdx.x;
  const int first = tile * ROWS, rows = min(ROWS, outs - first);
  packed += (long long)first * (32 * groups), scale += (long long)first * groups;

  if (CL > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  if (PF && threadIdx.x == 0) {
    const u32 bytes = rows * (32 * groups), from = (bytes / 32) * rank / CL * 32, to = (bytes / 32) * (rank + 1) / CL * 32;
    if (to > from) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(packed + from), "r"(to - from) : "memory");
  }

  constexpr int N = COL ? 4 : 2;
  const int units = COL ? (groups + 1) / 2 : groups, part = rank * WK + wk;
  int unit = (long long)units * part / (WK * CL);
  const int end = (long long)units * (part + 1) / (WK * CL);

  Source<NT, MT> from;
  from.limit = COL ? min(end, (groups + 1 - (t >> 1)) / 2) : end;
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = min((wm * MT + m) * 16 + h * 8 + g, rows - 1);  // a row beyond the end repeats the last
      from.w[m][h] = packed + (row * (32 * groups) + unit * (16 * N) + t * (4 * N));
      from.s[m][h] = scale + (row * groups + unit * (N / 2) + (COL ? t >> 1 : 0));
    }
#pragma unroll
  for (int n = 0; n < NT; ++n) {
    const int token = COL ? n * 4 + (g & 3) : n * 8 + g;
    from.limit_x[n] = token < tokens && (!COL || (t >> 1) == (g >> 2)) ? from.limit : 0;
    from.x[n] = x + (token * (64 * groups) + unit * (32 * N) + t * (8 * N));
  }

  float acc[MT][NT][4] = {};
  if (ST == 1) {
#pragma unroll 1
    for (; unit < end; unit += U, from.template advance<N>(U)) {
      Stage<NT, MT, U, COL> a;
      a.load(from, 0, unit);
      a.add(acc);
    }
  } else {
    Stage<NT, MT, U, COL> a, b;
    a.load(from, 0, unit);
#pragma unroll 1
    while (unit < end) {
      b.load(from, 1, unit);
      a.add(acc);
      if (unit + U >= end) break;
      a.load(from, 2, unit);
      b.add(acc);
      unit += 2 * U, from.template advance<N>(2 * U);
    }
  }

#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int n = 0; n < NT; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        red[(wk * COLS + n * 8 + 2 * t + (i & 1)) * PAD + (wm * MT + m) * 16 + (i >> 1) * 8 + g] = acc[m][n][i];
  __syncthreads();
  float* inbox = red + WK * COLS * PAD;
  if (CL > 1) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  for (int i = threadIdx.x; i < tokens * ROWS; i += THREADS) {
    const int token = i / ROWS, r = i % ROWS, col = COL ? (token / 4) * 8 + token % 4 : token;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < WK; ++k) {
      sum += red[(k * COLS + col) * PAD + r];
      if (COL) sum += red[(k * COLS + col + 4) * PAD + r];
    }
    if (CL == 1) {
      if (r < rows) y[(long long)token * outs + first + r] = narrow(sum);
    } else {
      u32 to, at = (u32)__cvta_generic_to_shared(inbox + (rank * TOKENS + token) * OWN + r % OWN);
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(at), "r"(r / OWN));
      asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(to), "f"(sum) : "memory");
    }
  }
  if (CL > 1) {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    for (int i = threadIdx.x; i < tokens * OWN; i += THREADS) {
      const int token = i / OWN, r = i % OWN;
      float sum = 0;
#pragma unroll
      for (int k = 0; k < CL; ++k) sum += inbox[(k * TOKENS + token) * OWN + r];
      if (rank * OWN + r < rows) y[(long long)token * outs + first + rank * OWN + r] = narrow(sum);
    }
  }
}
"""


def memory(config: tuple) -> int:
    NT, MT, WM, WK, U, ST, COL, CL, PF, MB = config
    rows = 16 * MT * WM
    return 4 * (WK * 8 * NT * (rows + 4) + (CL > 1) * (4 if COL else 8) * NT * rows)


@functools.cache
def compiled(config: tuple, device: int):
    name = f"int4_linear<{', '.join(map(str, config))}>"
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if memory(config) > 48 * 1024:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.cuKernelSetAttribute(attribute, memory(config), kernel.handle, device)
    return kernel


# The most outputs and the fewest groups of a class, and its NT, MT, WM, WK, U, ST, COL, CL, PF, MB. All blocks of a class fit
# on 132 SMs at once: 264 slots of 8 warps with up to 128 registers,
# 396 with up to 80, and so on.
TABLE = {
    4: (
        (1056, 64, (1, 1, 1, 16, 1, 2, 1, 2, 0, 1)),  # few tiles of 16 rows: K over 32 warps
        (2112, 0, (1, 1, 1, 16, 1, 2, 1, 1, 0, 1)),
        (4224, 0, (1, 1, 1, 8, 1, 2, 1, 1, 0, 1)),
        (8448, 0, (1, 2, 1, 8, 1, 2, 1, 1, 0, 2)),
        (None, 0, (1, 2, 1, 5, 1, 2, 1, 1, 0, 3)),
    ),
    8: (
        (1056, 64, (1, 1, 1, 16, 1, 2, 0, 2, 0, 2)),
        (2112, 0, (1, 1, 1, 16, 1, 2, 0, 1, 0, 2)),
        (6336, 32, (1, 2, 1, 8, 1, 2, 0, 2, 0, 3)),
        (8448, 0, (1, 1, 1, 8, 1, 2, 0, 1, 0, 1)),
        (None, 0, (1, 2, 1, 6, 1, 2, 0, 1, 0, 3)),
    ),
    16: (
        (1056, 64, (2, 1, 1, 8, 1, 2, 0, 4, 0, 2)),
        (2112, 32, (2, 1, 1, 8, 1, 2, 0, 2, 0, 2)),
        (2112, 0, (2, 1, 1, 8, 1, 2, 0, 1, 0, 1)),
        (4224, 32, (2, 2, 1, 8, 1, 2, 0, 2, 0, 2)),
        (4224, 0, (2, 1, 1, 8, 1, 2, 0, 1, 0, 1)),
        (8448, 0, (2, 2, 1, 8, 1, 2, 0, 1, 0, 2)),
        (None, 0, (2, 2, 1, 5, 1, 2, 0, 1, 0, 3)),
    ),
}


def choose(tokens: int, outs: int, groups: int) -> tuple:
    classes = TABLE[4 if tokens <= 4 else 8 if tokens <= 8 else 16]
    return next(config for most, least, config in classes if (most is None or outs <= most) and groups >= least)


def run(x, packed, scale):
    """y = x @ weight.T, (tokens, outs)."""
    x, packed, scale = (v if v.is_contiguous() and v.data_ptr() % 16 == 0 else v.clone(memory_format=torch.contiguous_format) for v in (x, packed, scale))
    assert x.dtype == scale.dtype == torch.bfloat16 and packed.dtype == torch.uint8
    tokens, (outs, groups) = x.shape[0], scale.shape
    y = torch.empty((tokens, outs), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    config = choose(tokens, outs, groups)
    kernel = compiled(config, x.device.index or 0)
    rows, warps, cluster = 16 * config[1] * config[2], config[2] * config[3], config[7]
    extra = {"cluster": (cluster,)} if cluster > 1 else {}
    launch(
        Stream.from_handle(torch.cuda.current_stream().cuda_stream),
        LaunchConfig(grid=((outs + rows - 1) // rows,), block=(32 * warps,), shmem_size=memory(config), **extra),
        kernel,
        x.data_ptr(), packed.data_ptr(), scale.data_ptr(), y.data_ptr(),
        numpy.int32(tokens), numpy.int32(outs), numpy.int32(groups),
    )
    return y
