"""kl_divergence: y[r] = sum over c of p * (log p - log q), with p = softmax(teacher[r]) and q = softmax(student[r]).

One pass without a running maximum: logits of a row differ by less than 80, so exponentials are taken relative to the row's
first element with a bias of 2^-32. They can neither overflow nor all vanish, and partial sums of a row simply add:
with u = log2(e) * (x - x0) - 32, y = ln 2 * (sum(2^ut * (ut - us)) / sum(2^ut) - log2(sum(2^ut)) + log2(sum(2^us))).
A row belongs to a warp, a block or a cluster of blocks, by its length and the number of rows.
"""

import functools

import numpy
import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef long long ll;

__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ uint4 load16(const uint4* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocateHINT.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ float wide(float x) { return x; }
__device__ __forceinline__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float wide(__half x) { return __half2float(x); }

// The two (one) values in a 32-bit word.
template <typename T> struct Word;
template <> struct Word<float> {
  static constexpr int N = 1;
  __device__ static void get(unsigned w, float* f) { f[0] = __uint_as_float(w); }
};
template <> struct Word<__nv_bfloat16> {
  static constexpr int N = 2;
  __device__ static void get(unsigned w, float* f) {
    f[0] = __uint_as_float(w << 16);
    f[1] = __uint_as_float(w & 0xffff0000u);
  }
};
template <> struct Word<__half> {
  static constexpr int N = 2;
  __device__ static void get(unsigned w, float* f) {
    f[0] = __half2float(__ushort_as_half((unsigned short)w));
    f[1] = __half2float(__ushort_as_half((unsigned short)(w >> 16)));
  }
};

struct Sums { float s, t, w; };

struct Row {
  float a, bs, bt;
  __device__ __forceinline__ void add(float xs, float xt, Sums& k) const {
    float us = fmaf(xs, a, bs), ut = fmaf(xt, a, bt);
    float es = ex2(us), et = ex2(ut);
    k.s += es;
    k.t += et;
    k.w = fmaf(et, ut - us, k.w);
  }
  template <typename T> __device__ __forceinline__ void word(unsigned s, unsigned t, Sums& k) const {
    float fs[2], ft[2];
    Word<T>::get(s, fs);
    Word<T>::get(t, ft);
    add(fs[0], ft[0], k);
    if (Word<T>::N == 2) add(fs[1], ft[1], k);
  }
  template <typename T> __device__ __forceinline__ void vec(uint4 s, uint4 t, Sums& k) const {
    word<T>(s.x, t.x, k);
    word<T>(s.y, t.y, k);
    word<T>(s.z, t.z, k);
    word<T>(s.w, t.w, k);
  }
};

__device__ __forceinline__ float total(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
__device__ __forceinline__ float result(Sums k) {
  return 0.69314718056f * (k.w / k.t + (log2f(k.s) - log2f(k.t)));
}

// TPR threads a row and block (32: 4 rows in a block of 128), C blocks a row (a cluster), U vectors of each input in flight a
// thread. WIDE: 16-byte loads, the ends of the row by values; both inputs' rows then have the same offset from 16 bytes.
template <typename T, typename I, int TPR, int U, int C, bool WIDE, int MINB>
__global__ void __launch_bounds__(TPR == 32 ? 128 : TPR, MINB)
kl(const T* __restrict__ student, const T* __restrict__ teacher, float* __restrict__ y, ll rows, ll cols, ll ss, ll ts,
   int splits, float4* __restrict__ sums) {
  constexpr int WARPS = TPR / 32, VEC = 16 / (int)sizeof(T);
  const int tid = TPR == 32 ? threadIdx.x & 31 : threadIdx.x;
  const int parts = TPR == 32 ? 1 : C > 1 ? C : splits;
  const ll row = TPR == 32 ? (ll)blockIdx.x * 4 + (threadIdx.x >> 5) : (ll)(blockIdx.x / (unsigned)parts);
  const int rank = TPR == 32 ? 0 : blockIdx.x % (unsigned)parts;
  __shared__ float part[3 * WARPS];
  __shared__ alignas(16) float4 other[C];
  __shared__ alignas(8) unsigned long long bar;
  if (TPR == 32 && row >= rows) return;
  const unsigned bar_at = (unsigned)__cvta_generic_to_shared(&bar);
  if (C > 1) {
    if (rank == 0 && tid == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar_at) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar_at), "r"(16 * (C - 1)) : "memory");
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  }
  const T* s = student + row * ss;
  const T* t = teacher + row * ts;
  const float xs0 = wide(s[0]), xt0 = wide(t[0]);
  Sums k = {0.f, 0.f, 0.f};
  Row r;
  r.a = 1.4426950408889634f;

  auto start = [&]() {
    r.bs = fmaf(xs0, -r.a, -32.f);
    r.bt = fmaf(xt0, -r.a, -32.f);
    return fmaxf(fabsf(xs0), fabsf(xt0)) < 134217728.f;         // beyond, the rounding of xs0 * a is too coarse
  };
  auto exact = [&]() {                                          // rare: subtract first
    const float a = r.a;
    for (ll c = (ll)rank * TPR + tid; c < cols; c += (ll)parts * TPR) {
      Row one = {a, -32.f, -32.f};
      one.add(wide(s[c]) - xs0, wide(t[c]) - xt0, k);
    }
  };

  if (WIDE) {
    I head = (I)(((16 - ((unsigned long long)s & 15)) & 15) / sizeof(T));
    if (head > cols) head = (I)cols;
    const I all = (I)((cols - head) / VEC);
    const I lo = (I)((ll)all * rank / parts), n = (I)((ll)all * (rank + 1) / parts) - lo;
    const uint4* ps = reinterpret_cast<const uint4*>(s + head) + lo;
    const uint4* pt = reinterpret_cast<const uint4*>(t + head) + lo;
    uint4 vs[U], vt[U];
#pragma unroll
    for (int j = 0; j < U; ++j)
      if (tid + j * TPR < n) {
        vs[j] = load16(ps + tid + j * TPR);
        vt[j] = load16(pt + tid + j * TPR);
      }
    if (start()) {
      if (rank == parts - 1) {
        const I tail = (I)(cols - head - all * VEC);
        if (head + tail > 0) {                                  // at most 14 values
          I c = tid < head ? tid : (I)(cols - tail) + (tid - head);
          if (tid < head + tail) r.add(wide(s[c]), wide(t[c]), k);
        }
      }
      I i = tid;
      for (; i + (2 * U - 1) * TPR < n; i += U * TPR) {
#pragma unroll
        for (int j = 0; j < U; ++j) {
          r.vec<T>(vs[j], vt[j], k);
          vs[j] = load16(ps + i + (U + j) * TPR);
          vt[j] = load16(pt + i + (U + j) * TPR);
        }
      }
      for (; i < n; i += U * TPR) {
#pragma unroll
        for (int j = 0; j < U; ++j)
          if (i + j * TPR < n) {
            r.vec<T>(vs[j], vt[j], k);
            if (i + (U + j) * TPR < n) {
              vs[j] = load16(ps + i + (U + j) * TPR);
              vt[j] = load16(pt + i + (U + j) * TPR);
            }
          }
      }
    } else {
      exact();
    }
  } else {
    if (start()) {
      ll c = (ll)rank * TPR + tid;
      for (; c < cols; c += (ll)parts * TPR * U) {
        T vs[U], vt[U];
#pragma unroll
        for (int j = 0; j < U; ++j)
          if (c + (ll)j * parts * TPR < cols) vs[j] = s[c + (ll)j * parts * TPR], vt[j] = t[c + (ll)j * parts * TPR];
#pragma unroll
        for (int j = 0; j < U; ++j)
          if (c + (ll)j * parts * TPR < cols) r.add(wide(vs[j]), wide(vt[j]), k);
      }
    } else {
      exact();
    }
  }

  if (C == 1) asm volatile("griddepcontrol.launch_dependents;");
  k.s = total(k.s);
  k.t = total(k.t);
  k.w = total(k.w);
  if (TPR > 32) {
    if ((tid & 31) == 0) {
      part[tid >> 5] = k.s;
      part[WARPS + (tid >> 5)] = k.t;
      part[2 * WARPS + (tid >> 5)] = k.w;
    }
    __syncthreads();
    if (tid < 32) {
      k.s = total(tid < WARPS ? part[tid] : 0.f);
      k.t = total(tid < WARPS ? part[WARPS + tid] : 0.f);
      k.w = total(tid < WARPS ? part[2 * WARPS + tid] : 0.f);
    }
  }
  if (C > 1) {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");   // the first block runs, its barrier is set up
    if (tid == 0) {
      if (rank) {
        const unsigned to = (unsigned)__cvta_generic_to_shared(&other[rank]);
        unsigned far_to, far_bar;
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(far_to) : "r"(to));
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(far_bar) : "r"(bar_at));
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(far_to),
                     "r"(__float_as_uint(k.s)), "r"(__float_as_uint(k.t)), "r"(__float_as_uint(k.w)), "r"(0u), "r"(far_bar)
                     : "memory");
      } else {
        unsigned done = 0;
        while (!done)
          asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                       : "=r"(done) : "r"(bar_at) : "memory");
#pragma unroll
        for (int j = 1; j < C; ++j) {
          const float4 o = other[j];
          k.s += o.x;
          k.t += o.y;
          k.w += o.z;
        }
        y[row] = result(k);
      }
    }
  } else if (tid == 0) {
    if (TPR > 32 && splits > 1)
      sums[blockIdx.x] = make_float4(k.s, k.t, k.w, 0.f);
    else
      y[row] = result(k);
  }
}

// A warp a row adds the sums of the row's parts.
__global__ void __launch_bounds__(32) combine(const float4* sums, float* y, int splits) {
  const ll row = blockIdx.x;
  Sums k = {0.f, 0.f, 0.f};
  asm volatile("griddepcontrol.wait;" ::: "memory");
  for (int i = threadIdx.x; i < splits; i += 32) {
    const float4 o = sums[row * splits + i];
    k.s += o.x;
    k.t += o.y;
    k.w += o.z;
  }
  k.s = total(k.s);
  k.t = total(k.t);
  k.w = total(k.w);
  if (threadIdx.x == 0) y[row] = result(k);
}
"""
TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float32: "float", torch.float16: "__half"}

HINT = 0
T = 256
MODE = 0


@functools.cache
def compiled(name: str):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    return Program(SOURCE.replace("HINT", f".L2::{HINT}B" if HINT else ""), "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


def choose(rows: int, cols: int, size: int):
    """Threads a row and block, vectors in flight, blocks a cluster, blocks a multiprocessor, parts of a row."""
    if cols * size <= 2048:
        return 32, 2, 1, 8, 1
    bulk = (T, 1, 1, 2048 // T) if size == 2 else (256, 2, 1, 6)
    if rows >= 2000 or cols * size <= 16384:
        return *bulk, 1
    if MODE and 400 <= rows <= 528:
        return 512, 1, 1, 4, 1
    splits = 4096 // rows                                       # several waves of long parts, or a single wave
    if cols * size < 30000 * splits:
        splits = max(1, min(132 * 2048 // T // rows, cols * size // 4096))
    if splits == 1:
        return *bulk, 1
    return T, 1, 1, 2048 // T, splits


def run(student, teacher):
    if student.dtype not in TYPES:
        student, teacher = student.float(), teacher.float()
    if student.stride(-1) != 1 and student.shape[-1] > 1:
        student = student.contiguous()
    if teacher.stride(-1) != 1 and teacher.shape[-1] > 1:
        teacher = teacher.contiguous()
    rows, cols = student.shape
    if not rows or not cols:
        return torch.zeros(rows, dtype=torch.float32, device=student.device)
    y = torch.empty(rows, dtype=torch.float32, device=student.device)
    size, ps, pt, ss, ts = student.element_size(), student.data_ptr(), teacher.data_ptr(), student.stride(0), teacher.stride(0)
    wide = (ps - pt) % 16 == 0 and (rows == 1 or (ss - ts) * size % 16 == 0)
    threads, flight, blocks, least, splits = choose(rows, cols, size)
    if cols * size <= 1024 and (ps % 16 or cols * size % 16 or ss * size % 16):
        wide = False
    if not wide:
        flight, least = 8, 1
    index = "int" if cols < 1 << 30 else "long long"
    name = f"kl<{TYPES[student.dtype]}, {index}, {threads}, {flight}, {blocks}, {str(wide).lower()}, {least}>"
    sums = torch.empty(rows * splits * 4, dtype=torch.float32, device=student.device) if splits > 1 else y
    if threads == 32:
        config = LaunchConfig(grid=((rows + 3) // 4,), block=(128,))
    elif blocks == 1:
        config = LaunchConfig(grid=(rows * splits,), block=(threads,))
    else:
        config = LaunchConfig(grid=(rows,), cluster=(blocks,), block=(threads,))
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    number = numpy.int64
    launch(stream, config, compiled(name), ps, pt, y.data_ptr(), number(rows), number(cols), number(ss), number(ts),
           numpy.int32(splits), sums.data_ptr())
    if splits > 1:
        config = LaunchConfig(grid=(rows,), block=(32,), programmatic_stream_serialization=True)
        launch(stream, config, compiled("combine"), sums.data_ptr(), y.data_ptr(), numpy.int32(splits))
    return y
