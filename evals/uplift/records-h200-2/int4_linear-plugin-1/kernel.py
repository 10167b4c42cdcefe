"""int4_linear: y = x @ weight.T with weight[o, i] = (nibble[o, i] - 8) * scale[o, i / 64].

Rows of the weights are the M of mma.m16n8k16, tokens its N. A block owns R rows; its warps split the groups in chunks of CH.
Each warp streams its own chunks with cp.async into its own part of shared memory, so that no barrier is in the main loop.
A nibble under a mask is a subnormal bfloat16 n * 2^-133 (or n * 2^-129): one exact fma gives (n - 8) * 2^-6. The scale of
a group multiplies the float32 sum of the group. Warps (and with KS > 1 the blocks of a cluster) are added at the end.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned short u16;

__device__ __forceinline__ u32 fma2(u32 a, u32 m, u32 s) {
  u32 d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(m), "r"(s));
  return d;
}

__device__ __forceinline__ void mma(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The 8 nibbles of a word as 4 pairs: (0, 4), (1, 5), (2, 6), (3, 7), each (n - 8) / 64.
__device__ __forceinline__ void weights(u32 w, u32 (&p)[4]) {
  u32 h = w >> 8;
  p[0] = fma2(w & 0x000f000fu, 0x7f007f00u, 0xbe00be00u);
  p[1] = fma2(w & 0x00f000f0u, 0x7d007d00u, 0xbe00be00u);
  p[2] = fma2(h & 0x000f000fu, 0x7f007f00u, 0xbe00be00u);
  p[3] = fma2(h & 0x00f000f0u, 0x7d007d00u, 0xbe00be00u);
}

__device__ __forceinline__ u16 rounded(float v) {
  u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
  return h;
}

// Not __ldg: the load must stay behind griddepcontrol.wait, and the kernel before may have written x.
__device__ __forceinline__ uint4 loaded(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from) : "memory");
  return v;
}

// All but the last n groups; n is known where the loop around it is unrolled.
__device__ __forceinline__ void arrived(int n) {
  if (n == 0) asm volatile("cp.async.wait_group 0;" ::: "memory");
  else if (n == 1) asm volatile("cp.async.wait_group 1;" ::: "memory");
  else if (n == 2) asm volatile("cp.async.wait_group 2;" ::: "memory");
  else if (n == 3) asm volatile("cp.async.wait_group 3;" ::: "memory");
  else if (n == 4) asm volatile("cp.async.wait_group 4;" ::: "memory");
  else if (n == 5) asm volatile("cp.async.wait_group 5;" ::: "memory");
  else if (n == 6) asm volatile("cp.async.wait_group 6;" ::: "memory");
  else if (n == 7) asm volatile("cp.async.wait_group 7;" ::: "memory");
}

template <int WARPS, int CH, int NT, int NB, int STAGES, int KS, int ONCE, int PER>
__global__ __launch_bounds__(WARPS * 32, PER) void kernel(const u16* __restrict__ x, const unsigned char* __restrict__ packed,
                                                     const u16* __restrict__ scale, u16* __restrict__ y, int tokens,
                                                     int outs, int groups, int R, int slab) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int ROW = CH * 32, PIECES = CH * 2, STEP = 32 / PIECES;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int rank = KS > 1 ? blockIdx.x % KS : 0;
  const int r0 = (KS > 1 ? blockIdx.x / KS : blockIdx.x) * R, rows = min(R, outs - r0);
  const int chunks = (groups + CH - 1) / CH;
  const int first = rank * WARPS + warp;
  const int n = first < chunks ? (ONCE ? 1 : (chunks - first + WARPS * KS - 1) / (WARPS * KS)) : 0;
  const long long stride = 32ll * groups;

  // The next kernel may be set up now; nothing is read or written before the kernel before this one is complete.
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  // The scales of the block are one piece of memory: all warps copy it, from the 16 bytes that its first byte is in.
  const long long begin = 2ll * r0 * groups, end = begin + 2ll * rows * groups, from0 = begin & ~15ll;
  {
    const u32 to = (u32)__cvta_generic_to_shared(shared);
    const unsigned char* from = reinterpret_cast<const unsigned char*>(scale);
    for (long long at = from0 + threadIdx.x * 16; at < end; at += WARPS * 512) {
      const int bytes = (int)min(16ll, end - at);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                   :: "r"(to + (u32)(at - from0)), "l"(from + at), "r"(bytes) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  const u16* const scales = reinterpret_cast<const u16*>(shared + (begin - from0)) + t % CH;

  unsigned char* const mine = shared + slab + (size_t)warp * STAGES * R * ROW;
  const int lrow = lane / PIECES, q = lane % PIECES;
  const u32 to0 = (u32)__cvta_generic_to_shared(mine) + lrow * ROW +
                  ((CH == 4 ? (q / 2) ^ (lrow & 3) : (q / 2) ^ ((lrow >> 1) & 1)) * 32) + (q & 1) * 16;
  const unsigned char* const weights0 = packed + (long long)(r0 + lrow) * stride + q * 16;

  auto issue = [&](int i, int a, int stage) {    // rows 16 a .. 16 a + 15 of chunk i
    const int c = first + i * WARPS * KS;
    if (i < n && c * CH + q / 2 < groups) {
      const unsigned char* from = weights0 + a * 16 * stride + c * ROW;
      const u32 to = to0 + stage * R * ROW + a * 16 * ROW;
#pragma unroll
      for (int row = 0; row < 16; row += STEP)
        if (a * 16 + row + lrow < rows)
          asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;"
                       :: "r"(to + row * ROW), "l"(from + row * stride) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  uint4 e[CH][NB][2];
  auto inputs = [&](int i, int j) {
    const int grp = (first + i * WARPS * KS) * CH + j;
#pragma unroll
    for (int b = 0; b < NB; ++b) {
      e[j][b][0] = e[j][b][1] = make_uint4(0, 0, 0, 0);
      if (i < n && grp < groups && g + 8 * b < tokens) {
        const uint4* from = reinterpret_cast<const uint4*>(x + ((long long)(g + 8 * b) * groups + grp) * 64 + t * 16);
        e[j][b][0] = loaded(from);
        e[j][b][1] = loaded(from + 1);
      }
    }
  };

  float acc[NT][NB][4];
#pragma unroll
  for (int a = 0; a < NT; ++a)
#pragma unroll
    for (int b = 0; b < NB; ++b)
#pragma unroll
      for (int c = 0; c < 4; ++c) acc[a][b][c] = 0.0f;

  // The inputs first: behind the copies they would wait for all of them.
#pragma unroll
  for (int j = 0; j < CH; ++j) inputs(0, j);
#pragma unroll
  for (int s = 0; s < STAGES; ++s)
#pragma unroll
    for (int a = 0; a < NT; ++a) issue(s, a, s);
  asm volatile("cp.async.wait_group %0;" :: "n"(STAGES * NT) : "memory");
  __syncthreads();

  int stage = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    const int c = first + i * WARPS * KS, count = min(CH, groups - c * CH);
    const unsigned char* buffer = mine + stage * R * ROW + g * ROW + t * 8;
#pragma unroll
    for (int a = 0; a < NT; ++a) {
      if (ONCE) arrived(NT - 1 - a);
      else asm volatile("cp.async.wait_group %0;" :: "n"(STAGES * NT - 1) : "memory");
      __syncwarp();
      // Groups past the last are skipped; rows past R read other bytes of shared memory and are never written.
#if CLAMP
      const int top = min(a * 16 + g, rows - 1), low = min(a * 16 + g + 8, rows - 1);
#else
      const int top = a * 16 + g, low = a * 16 + g + 8;
#endif
      const u32 s = scales[top * groups + c * CH] | (u32)scales[low * groups + c * CH] << 16;
#pragma unroll
      for (int j = 0; j < CH; ++j) {
        if (a == 0) {
#pragma unroll
          for (int b = 0; b < NB; ++b)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              const uint4 v = e[j][b][h];
              e[j][b][h] = make_uint4(__byte_perm(v.x, v.z, 0x5410), __byte_perm(v.x, v.z, 0x7632),
                                      __byte_perm(v.y, v.w, 0x5410), __byte_perm(v.y, v.w, 0x7632));
            }
        }
        if (j < count) {
          const int unit = CH == 4 ? j ^ (g & 3) : j ^ ((g >> 1) & 1);
          const uint2 w0 = *reinterpret_cast<const uint2*>(buffer + a * 16 * ROW + unit * 32);
          const uint2 w1 = *reinterpret_cast<const uint2*>(buffer + (a * 16 + 8) * ROW + unit * 32);
          const u32 both = __shfl_sync(0xffffffffu, s, j, 4);
          float d[NB][4] = {};
          u32 p0[4], p1[4];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            weights(h ? w0.y : w0.x, p0);
            weights(h ? w1.y : w1.x, p1);
#pragma unroll
            for (int b = 0; b < NB; ++b) {
              mma(d[b], p0[0], p1[0], p0[1], p1[1], e[j][b][h].x, e[j][b][h].y);
              mma(d[b], p0[2], p1[2], p0[3], p1[3], e[j][b][h].z, e[j][b][h].w);
            }
          }
          const float lo = __uint_as_float(both << 16), hi = __uint_as_float(both & 0xffff0000u);
#pragma unroll
          for (int b = 0; b < NB; ++b) {
            acc[a][b][0] += lo * d[b][0];
            acc[a][b][1] += lo * d[b][1];
            acc[a][b][2] += hi * d[b][2];
            acc[a][b][3] += hi * d[b][3];
          }
        }
        if (!ONCE && a == NT - 1) inputs(i + 1, j);
      }
      if (!ONCE) {
        __syncwarp();
        issue(i + STAGES, a, stage);
      }
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();

  constexpr int RS = 16 * NT + 4, PART = NB * 8 * RS;
  float* const sums = reinterpret_cast<float*>(shared);
  float* const part = sums + warp * PART;
#pragma unroll
  for (int a = 0; a < NT; ++a)
#pragma unroll
    for (int b = 0; b < NB; ++b) {
      float* to = part + (b * 8 + 2 * t) * RS + a * 16 + g;
      to[0] = acc[a][b][0];
      to[RS] = acc[a][b][1];
      to[8] = acc[a][b][2];
      to[RS + 8] = acc[a][b][3];
    }
  __syncthreads();
#pragma unroll 1
  for (int o = threadIdx.x; o < tokens * 16 * NT; o += WARPS * 32) {
    const int token = o / (16 * NT), row = o % (16 * NT);
    if (row < rows) {
      float v = 0.0f;
#pragma unroll
      for (int k = 0; k < WARPS; ++k) v += sums[k * PART + token * RS + row];
      if (KS == 1) y[(long long)token * outs + r0 + row] = rounded(v * 64.0f);
      else sums[WARPS * PART + o] = v;
    }
  }
  if (KS > 1) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    const u32 address = (u32)__cvta_generic_to_shared(sums + WARPS * PART);
#pragma unroll 1
    for (int o = threadIdx.x + rank * WARPS * 32; o < tokens * 16 * NT; o += WARPS * 32 * KS) {
      const int token = o / (16 * NT), row = o % (16 * NT);
      if (row < rows) {
        float v = 0.0f;
#pragma unroll
        for (int k = 0; k < KS; ++k) {
          u32 there;
          float piece;
          asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address + o * 4), "r"(k));
          asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(piece) : "r"(there) : "memory");
          v += piece;
        }
        y[(long long)token * outs + r0 + row] = rounded(v * 64.0f);
      }
    }
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  }
}
"""

WMAX = 17
CH = 4
STAGES = 3
KS = 1  # blocks of a cluster that share the groups of the same rows
PER = 1
TWO = 1  # two smaller blocks an SM where one wave does not do
LIMIT = 227 * 1024
SMS = 132


@functools.cache
def compiled(arguments: tuple, clamp: int, device: int):
    name = "kernel<" + ", ".join(map(str, arguments)) + ">"
    options = ProgramOptions(arch="sm_90a", std="c++17", define_macro=("CLAMP", str(clamp)))
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    error = driver.cuKernelSetAttribute(attribute, LIMIT, kernel.handle, device)[0]
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(error))
    return kernel


@functools.cache
def plan(tokens: int, outs: int, groups: int):
    """The kernel's template arguments and CLAMP, shared bytes, rows of a block, bytes of scales and blocks."""
    ch, ks, per = CH, KS, PER
    nb = 1 if tokens <= 8 else 2
    chunks = -(-groups // (ch * ks))
    need = -(-chunks // WMAX)
    warps = max(4, -(-chunks // need))
    while True:
        limit = LIMIT // per - (1024 if per > 1 else 0)
        slots = SMS * per // ks
        best = None
        for stages in range(min(need, STAGES), 0, -1):
            most = 96 if nb == 1 else 64
            while most > 1 and shared_bytes(warps, ch, nb, stages, most, groups)[0] > limit:
                most -= 1
            waves = -(-outs // (slots * most))
            if best is None or waves < (best[0] if stages > 1 else best[0] // 2):
                best = waves, stages
        waves, stages = best
        # Two blocks an SM overlap their ends, where the registers allow it.
        if per == 1 and waves > 1 and need == 1 and nb == 1 and warps <= 16 and TWO:
            per = 2
            continue
        break
    rows = -(-outs // (slots * waves))
    shared, slab, clamp = shared_bytes(warps, ch, nb, stages, rows, groups)
    return (warps, ch, -(-rows // 16), nb, stages, ks, int(need == 1), per), clamp, shared, rows, slab, -(-outs // rows)


def shared_bytes(warps, ch, nb, stages, rows, groups):
    tiles = -(-rows // 16)
    slab = -(-(2 * rows * groups + 16) // 128) * 128
    # The last tile may read past the last row, of the weights and (but for CLAMP) of the scales.
    weights = slab + (warps * stages * rows + 16 * tiles - rows) * ch * 32
    scales = 2 * 16 * tiles * groups + 64
    clamp = int(scales > 64 * 1024 and scales > weights)
    return max(weights, 0 if clamp else scales, (warps + 1) * nb * 8 * (16 * tiles + 4) * 4), slab, clamp


def run(x, packed, scale):
    tokens, (outs, groups) = x.shape[0], scale.shape
    y = torch.empty((tokens, outs), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    if groups == 0:
        return y.zero_()
    x, packed, scale = (a if a.data_ptr() % 16 == 0 else a.clone() for a in (x.contiguous(), packed.contiguous(), scale.contiguous()))
    arguments, clamp, shared, rows, slab, blocks = plan(tokens, outs, groups)
    kernel = compiled(arguments, clamp, x.device.index or 0)
    more = {"cluster": (arguments[5],)} if arguments[5] > 1 else {}
    config = LaunchConfig(grid=(blocks,), block=(arguments[0] * 32,), shmem_size=shared,
                          programmatic_stream_serialization=True, **more)
    stream = Stream.from_handle(torch.cuda.current_stream(x.device).cuda_stream)
    launch(stream, config, kernel, x.data_ptr(), packed.data_ptr(), scale.data_ptr(), y.data_ptr(), numpy.int32(tokens),
           numpy.int32(outs), numpy.int32(groups), numpy.int32(rows), numpy.int32(slab))
    return y
