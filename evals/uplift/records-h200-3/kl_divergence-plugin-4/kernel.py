"""kl_divergence: y[r] = sum over c of p * (log p - log q), with p = softmax(teacher[r]) and q = softmax(student[r])

One pass. Logits of a row differ by less than 80, so every exponential is taken relative to the row's first logit, times
2^-12: it can neither overflow nor lose a term that counts, and partial sums of threads, warps and blocks simply add up.
With dt = t - t[0], ds = s - s[0]:  y = sum(e^dt * (dt - ds)) / sum(e^dt) + log sum(e^ds) - log sum(e^dt).
A row belongs to a part of a warp, to a block, or to a cluster of blocks that adds up through distributed shared memory.
A launch may start before the preceding one has ended, and waits for its end before it touches global memory.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
struct bf16 { unsigned short bits; };
struct half16 { unsigned short bits; };

__device__ __forceinline__ float half_to_float(unsigned short h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
__device__ __forceinline__ float one(const float* p) { return __ldg(p); }
__device__ __forceinline__ float one(const bf16* p) {
  return __uint_as_float((unsigned)__ldg((const unsigned short*)p) << 16);
}
__device__ __forceinline__ float one(const half16* p) { return half_to_float(__ldg((const unsigned short*)p)); }

__device__ __forceinline__ void unpack(const uint4& v, float (&f)[4], const float*) {
  f[0] = __uint_as_float(v.x); f[1] = __uint_as_float(v.y); f[2] = __uint_as_float(v.z); f[3] = __uint_as_float(v.w);
}
__device__ __forceinline__ void unpack(const uint4& v, float (&f)[8], const bf16*) {
  const unsigned w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    f[2 * k] = __uint_as_float(w[k] << 16);
    f[2 * k + 1] = __uint_as_float(w[k] & 0xffff0000u);
  }
}
__device__ __forceinline__ void unpack(const uint4& v, float (&f)[8], const half16*) {
  const unsigned w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    f[2 * k] = half_to_float((unsigned short)(w[k] & 0xffffu));
    f[2 * k + 1] = half_to_float((unsigned short)(w[k] >> 16));
  }
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
template <int MODE>
__device__ __forceinline__ uint4 load16(const uint4* p) {
  uint4 v;
  if (MODE == 0)
    asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  else if (MODE == 1)
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  else
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}

struct Sums {
  float zt, zs, a;
  __device__ __forceinline__ void add(float t, float s, float t0, float s0) {
    const float dt = t - t0, ds = s - s0;
    const float et = exp2_fast(fmaf(dt, 1.4426950408889634f, -12.0f));
    const float es = exp2_fast(fmaf(ds, 1.4426950408889634f, -12.0f));
    zt += et;
    zs += es;
    a = fmaf(et, dt - ds, a);
  }
  __device__ __forceinline__ void warp(int width) {
    for (int o = width >> 1; o; o >>= 1) {
      zt += __shfl_xor_sync(~0u, zt, o);
      zs += __shfl_xor_sync(~0u, zs, o);
      a += __shfl_xor_sync(~0u, a, o);
    }
  }
  __device__ __forceinline__ float result() const { return a / zt + (logf(zs) - logf(zt)); }
};

// GROUP threads of a block share a row. GROUP == THREADS: all blocks of a cluster share it.
template <typename T, int THREADS, int GROUP, int U, int MINB, int MODE>
__global__ void __launch_bounds__(THREADS, MINB)
kl(const T* __restrict__ student, const T* __restrict__ teacher, float* __restrict__ y, long long rows, long long n,
   long long student_stride, long long teacher_stride) {
  constexpr int N = 16 / sizeof(T);
  constexpr int WARPS = THREADS / 32;
  constexpr bool WHOLE = GROUP == THREADS && GROUP > 32;
  __shared__ float part[WHOLE ? WARPS : 1][3];
  __shared__ float4 other[WHOLE ? 16 : 1];
  __shared__ unsigned long long arrived;
  unsigned blocks = 1, rank = 0;
  if (WHOLE) {
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (blocks > 1) {
      if (rank == 0 && threadIdx.x == 0) {
        const unsigned bar = (unsigned)__cvta_generic_to_shared(&arrived);
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"((blocks - 1) * 16) : "memory");
      }
      __syncwarp();
      asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    }
  }
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");  // before the first access to global memory
  const long long row = WHOLE ? (long long)(blockIdx.x / blocks)
                              : (long long)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  float t0 = 0.f, s0 = 0.f;
  if (row < rows && n > 0) {
    t0 = one(teacher + row * teacher_stride);
    s0 = one(student + row * student_stride);
  }
  Sums sums;
#pragma unroll 1
  for (int pass = 0;; ++pass) {
    sums = Sums{0.f, 0.f, 0.f};
    if (row < rows && n > 0) {
      const T* t = teacher + row * teacher_stride;
      const T* s = student + row * student_stride;
      const int in_group = threadIdx.x % GROUP;
      const long long lane = (long long)rank * GROUP + in_group;
      const int stride = blocks * GROUP;
      const unsigned at = (unsigned)(unsigned long long)t & 15u;
      if (at == ((unsigned)(unsigned long long)s & 15u)) {
        long long head = ((16u - at) & 15u) / sizeof(T);
        if (head > n) head = n;
        const long long vectors = (n - head) / N;
        const uint4* tv = reinterpret_cast<const uint4*>(t + head);
        const uint4* sv = reinterpret_cast<const uint4*>(s + head);
        long long i = lane;
        for (; i + (U - 1) * stride < vectors; i += U * stride) {
          uint4 a[U], b[U];
#pragma unroll
          for (int k = 0; k < U; ++k) {
            a[k] = load16<MODE>(tv + i + k * stride);
            b[k] = load16<MODE>(sv + i + k * stride);
          }
#pragma unroll
          for (int k = 0; k < U; ++k) {
            float f[N], g[N];
            unpack(a[k], f, t);
            unpack(b[k], g, s);
#pragma unroll
            for (int j = 0; j < N; ++j) sums.add(f[j], g[j], t0, s0);
          }
        }
        if (i < vectors) {
          uint4 a[U], b[U];
#pragma unroll
          for (int k = 0; k < U - 1 || k < 1; ++k)
            if (i + k * stride < vectors) {
              a[k] = load16<MODE>(tv + i + k * stride);
              b[k] = load16<MODE>(sv + i + k * stride);
            }
#pragma unroll
          for (int k = 0; k < U - 1 || k < 1; ++k)
            if (i + k * stride < vectors) {
              float f[N], g[N];
              unpack(a[k], f, t);
              unpack(b[k], g, s);
#pragma unroll
              for (int j = 0; j < N; ++j) sums.add(f[j], g[j], t0, s0);
            }
        }
        if (rank == 0) {
          const long long end = head + vectors * N;
          if (in_group < head) sums.add(one(t + in_group), one(s + in_group), t0, s0);
          const int back = GROUP - 1 - in_group;
          if (back < n - end) sums.add(one(t + end + back), one(s + end + back), t0, s0);
        }
      } else {
#pragma unroll 8
        for (long long i = lane; i < n; i += stride) sums.add(one(t + i), one(s + i), t0, s0);
      }
    }
    sums.warp(GROUP < 32 ? GROUP : 32);
    if (WHOLE) {
    const int w = threadIdx.x / 32, l = threadIdx.x % 32;
    if (l == 0) {
      part[w][0] = sums.zt;
      part[w][1] = sums.zs;
      part[w][2] = sums.a;
    }
    __syncthreads();
    sums = l < WARPS ? Sums{part[l][0], part[l][1], part[l][2]} : Sums{0.f, 0.f, 0.f};  // in every warp
    sums.warp(32);
    if (blocks > 1) {
      asm volatile("barrier.cluster.wait.aligned;" ::: "memory");  // the first block runs: its shared memory may be written
      if (rank != 0) {
        if (threadIdx.x == 0) {
          const unsigned mine = (unsigned)__cvta_generic_to_shared(&other[rank]);
          const unsigned bar = (unsigned)__cvta_generic_to_shared(&arrived);
          unsigned there, signal;
          asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(mine));
          asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(signal) : "r"(bar));
          asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(there),
                       "f"(sums.zt), "f"(sums.zs), "f"(sums.a), "f"(0.f), "r"(signal)
                       : "memory");
        }
        return;
      }
      {
        const unsigned bar = (unsigned)__cvta_generic_to_shared(&arrived);
        unsigned done = 0;
        while (!done)
          asm volatile(
              "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
              : "=r"(done)
              : "r"(bar)
              : "memory");
        if (l > 0) {
          const float4 o = l < blocks ? other[l] : make_float4(0.f, 0.f, 0.f, 0.f);
          sums = Sums{o.x, o.y, o.z};
        }
        __syncwarp();
        sums.warp(32);
      }
    }
    }
    // Precision: if the first logit lies more than 29 below the largest (rare), go over the row again, relative to log sum exp.
    const bool far = fmaxf(sums.zt, sums.zs) > 1073741824.f;
    if (pass > 0 || !(WHOLE ? far : __any_sync(~0u, far))) break;
    if (row < rows && n > 0) {
      t0 += logf(sums.zt) + 8.317766f;
      s0 += logf(sums.zs) + 8.317766f;
    }
    if (WHOLE) {
      __syncthreads();  // all have read the partial sums; the first block of a cluster goes on alone
      blocks = 1;
    }
  }
  if (row < rows && threadIdx.x % GROUP == 0) y[row] = n > 0 ? sums.result() : 0.f;
}
"""
TYPES = {torch.bfloat16: "bf16", torch.float32: "float", torch.float16: "half16"}


@functools.cache
def compiled(kind: str, threads: int, group: int, unroll: int, minimum: int, mode: int):
    name = f"kl<{kind}, {threads}, {group}, {unroll}, {minimum}, {mode}>"
    options = ProgramOptions(arch="sm_90a", std="c++17")
    kernel = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)
    if threads == group and group > 32:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        driver.cuKernelSetAttribute(attribute, 1, kernel.handle, torch.cuda.current_device())
    return kernel


def choose(rows: int, n: int, size: int):
    """(threads, group, unroll, minimum of blocks a multiprocessor, load mode), blocks of a cluster, early launch."""
    vectors = n * size / 16
    early = rows <= 32 or rows > 400
    if vectors <= 24:
        return (128, 8, 2, 8, 1), 1, early
    if vectors <= 512 and rows > 264:
        return (64, 32, 2, 16, 1), 1, early
    if vectors <= 512:
        return (128, 128, 4, 8, 1), 1, early
    if vectors <= 2048:
        return (256, 256, 2, 6, 1) if size == 2 and rows > 264 else (256, 256, 4, 4, 1), 1, early
    if rows > 400:
        return (512, 512, 2, 3, 1) if size == 2 and vectors <= 5000 and rows > 1024 else (256, 256, 4, 4, 1), 1, early
    if rows > 96:
        cluster = 2 if rows <= 140 and vectors >= 6000 else 1
        return (512, 512, 2, 3, 1), cluster, early
    if rows > 32:
        cluster = max(1, min(8, 448 // rows, int(vectors / 500)))
        return (256, 256, 4, 4, 1), cluster, early
    cluster = max(1, min(16, int(vectors / 240)))
    return (256, 256, 2, 6, 1) if rows > 16 else (256, 256, 4, 4, 1), cluster, early


def start(student, teacher, settings, cluster, early):
    rows, n = teacher.shape
    y = torch.empty(rows, dtype=torch.float32, device=teacher.device)
    if rows == 0:
        return y
    if n > 1 and (teacher.stride(1) != 1 or student.stride(1) != 1):
        student, teacher = student.contiguous(), teacher.contiguous()
    kernel = compiled(TYPES[teacher.dtype], *settings)
    threads, group = settings[:2]
    if threads == group and group > 32:
        config = configured(rows, cluster, threads, early)
    else:
        config = configured(-(-rows // (threads // group)), 1, threads, early)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    launch(stream, config, kernel, student.data_ptr(), teacher.data_ptr(), y.data_ptr(), numpy.int64(rows), numpy.int64(n),
           numpy.int64(student.stride(0)), numpy.int64(teacher.stride(0)))
    return y


@functools.lru_cache(maxsize=256)
def configured(grid: int, cluster: int, threads: int, early: bool):
    if cluster > 1:
        return LaunchConfig(grid=(grid,), cluster=(cluster,), block=(threads,), programmatic_stream_serialization=early)
    return LaunchConfig(grid=(grid,), block=(threads,), programmatic_stream_serialization=early)


def run(student, teacher):
    return start(student, teacher, *choose(teacher.shape[0], teacher.shape[1], teacher.element_size()))
