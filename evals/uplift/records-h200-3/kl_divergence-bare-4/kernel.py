"""kl_divergence: y[r] = sum over c of p * (log p - log q), p = softmax(teacher[r]), q = softmax(student[r]).

One pass over both inputs. Every thread keeps (mt, ms, zt, zs, a): a lazily updated shift for each side, the sums of
exp(t - mt) and exp(s - ms), and a = sum of exp(t - mt) * ((t - mt) - (s - ms)). The partial results of a row are merged
through shuffles, shared memory and, where a row is split over blocks, global memory (the last block merges).
"""

import functools

import numpy
import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;
#define L2E 1.4426950408889634f
#define SLACK 6.0f

struct BF16 { unsigned short v; };
struct FP16 { unsigned short v; };
struct FP32 { float v; };

__device__ __forceinline__ float ex2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }

template <typename E> struct Ops;
template <> struct Ops<FP32> {
  static constexpr int N = 4;
  static __device__ __forceinline__ float one(const FP32* p) { return p->v; }
  static __device__ __forceinline__ void unpack(const uint4& x, float* f) {
    f[0] = __uint_as_float(x.x); f[1] = __uint_as_float(x.y); f[2] = __uint_as_float(x.z); f[3] = __uint_as_float(x.w);
  }
  template <int U> static __device__ __forceinline__ float top(const uint4* x) {
    float m = -3.4e38f;
#pragma unroll
    for (int i = 0; i < U; i++) {
      float f[4]; unpack(x[i], f);
      m = fmaxf(m, fmaxf(fmaxf(f[0], f[1]), fmaxf(f[2], f[3])));
    }
    return m;
  }
};
template <> struct Ops<BF16> {
  static constexpr int N = 8;
  static __device__ __forceinline__ float one(const BF16* p) { return __uint_as_float((u32)p->v << 16); }
  static __device__ __forceinline__ u32 max2(u32 a, u32 b) { u32 r; asm("max.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
  static __device__ __forceinline__ void two(u32 x, float* f) { f[0] = __uint_as_float(x << 16); f[1] = __uint_as_float(x & 0xffff0000u); }
  static __device__ __forceinline__ void unpack(const uint4& x, float* f) { two(x.x, f); two(x.y, f + 2); two(x.z, f + 4); two(x.w, f + 6); }
  template <int U> static __device__ __forceinline__ float top(const uint4* x) {
    u32 m = x[0].x;
#pragma unroll
    for (int i = 0; i < U; i++) m = max2(m, max2(max2(x[i].x, x[i].y), max2(x[i].z, x[i].w)));
    float f[2]; two(m, f);
    return fmaxf(f[0], f[1]);
  }
};
template <> struct Ops<FP16> {
  static constexpr int N = 8;
  static __device__ __forceinline__ float cvt(unsigned short h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
  static __device__ __forceinline__ float one(const FP16* p) { return cvt(p->v); }
  static __device__ __forceinline__ u32 max2(u32 a, u32 b) { u32 r; asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
  static __device__ __forceinline__ void two(u32 x, float* f) { f[0] = cvt((unsigned short)(x & 0xffff)); f[1] = cvt((unsigned short)(x >> 16)); }
  static __device__ __forceinline__ void unpack(const uint4& x, float* f) { two(x.x, f); two(x.y, f + 2); two(x.z, f + 4); two(x.w, f + 6); }
  template <int U> static __device__ __forceinline__ float top(const uint4* x) {
    u32 m = x[0].x;
#pragma unroll
    for (int i = 0; i < U; i++) m = max2(m, max2(max2(x[i].x, x[i].y), max2(x[i].z, x[i].w)));
    float f[2]; two(m, f);
    return fmaxf(f[0], f[1]);
  }
};

struct State {
  float mt, ms, zt, zs, a;
  __device__ __forceinline__ void shift(float nt, float ns) {  // to the shifts nt and ns
    float dt = mt - nt, ds = ms - ns, ft = ex2(dt * L2E), fs = ex2(ds * L2E);
    a = ft * (a + zt * (dt - ds));
    zt *= ft; zs *= fs; mt = nt; ms = ns;
  }
  __device__ __forceinline__ void add(float t, float s) {
    float u = t - mt, v = s - ms, e = ex2(u * L2E);
    zt += e; zs += ex2(v * L2E); a += e * (u - v);
  }
  __device__ __forceinline__ void single(float t, float s) {
    if (t > mt + SLACK || s > ms + SLACK) shift(fmaxf(mt, t), fmaxf(ms, s));
    add(t, s);
  }
  template <typename E, int U> __device__ __forceinline__ void vectors(const uint4* t, const uint4* s) {
    float ct = Ops<E>::template top<U>(t), cs = Ops<E>::template top<U>(s);
    if (ct > mt + SLACK || cs > ms + SLACK) shift(fmaxf(mt, ct), fmaxf(ms, cs));
#pragma unroll
    for (int i = 0; i < U; i++) {
      float f[Ops<E>::N], g[Ops<E>::N];
      Ops<E>::unpack(t[i], f); Ops<E>::unpack(s[i], g);
      float pt = 0, ps = 0, pa = 0;
#pragma unroll
      for (int j = 0; j < Ops<E>::N; j++) {
        float u = f[j] - mt, v = g[j] - ms, e = ex2(u * L2E);
        pt += e; ps += ex2(v * L2E); pa += e * (u - v);
      }
      zt += pt; zs += ps; a += pa;
    }
  }
  template <int W> __device__ __forceinline__ void warp() {  // merge over W lanes
    float nt = mt, ns = ms;
#pragma unroll
    for (int o = W / 2; o; o >>= 1) {
      nt = fmaxf(nt, __shfl_xor_sync(~0u, nt, o)); ns = fmaxf(ns, __shfl_xor_sync(~0u, ns, o));
    }
    shift(nt, ns);
#pragma unroll
    for (int o = W / 2; o; o >>= 1) {
      zt += __shfl_xor_sync(~0u, zt, o); zs += __shfl_xor_sync(~0u, zs, o); a += __shfl_xor_sync(~0u, a, o);
    }
  }
  __device__ __forceinline__ float result() const { return a / zt + logf(zs / zt); }
};

__device__ __forceinline__ uint4 load(const uint4* p) {
  uint4 r;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
  return r;
}


struct Job { float4* partial; u32* counter; int parts; int ahead; };

// a warp stores a row's piece at `mine`; the last of `pieces` merges them all
__device__ __forceinline__ void gather(State& x, float4* mine, const float4* all, u32* counter, int pieces, float* y) {
  const int lane = threadIdx.x % 32;
  u32 before = 0;
  if (lane == 0) {
    __stcg(mine, make_float4(x.mt, x.ms, x.zt, x.zs));
    __stcg(mine + 1, make_float4(x.a, 0, 0, 0));
    __threadfence();
    before = atomicInc(counter, pieces - 1);  // back to 0 after the last
    __threadfence();
  }
  if (__shfl_sync(~0u, before, 0) != pieces - 1) return;
  __threadfence();
  auto get = [&](int i) {
    const float4* p = all + 2 * i;
    float4 f = __ldcg(p), g = __ldcg(p + 1);
    return State{f.x, f.y, f.z, f.w, g.x};
  };
  x = get(min(lane, pieces - 1));
  if (lane >= pieces) x.zt = x.zs = x.a = 0;
  for (int i = lane + 32; i < pieces; i += 32) {
    State o = get(i);
    float nt = fmaxf(x.mt, o.mt), ns = fmaxf(x.ms, o.ms);
    x.shift(nt, ns); o.shift(nt, ns);
    x.zt += o.zt; x.zs += o.zs; x.a += o.a;
  }
  x.template warp<32>();
  if (lane == 0) *y = x.result();
}

// merge the states of a block of T threads and, through memory, of the blocks of a row; the last one stores
template <int T> __device__ __forceinline__ void finish(State& x, long long row, int part, float* y, const Job& job) {
  __shared__ float all[5][T / 32];
  const int lane = threadIdx.x % 32, w = threadIdx.x / 32;
  constexpr int NW = T / 32;
  constexpr int NP = NW <= 1 ? 1 : NW <= 2 ? 2 : NW <= 4 ? 4 : NW <= 8 ? 8 : NW <= 16 ? 16 : 32;
  x.template warp<32>();
  if (lane == 0) { all[0][w] = x.mt; all[1][w] = x.ms; all[2][w] = x.zt; all[3][w] = x.zs; all[4][w] = x.a; }
  __syncthreads();
  if (w) return;
  const int l = lane % NP;
  if (l < NW) { x.mt = all[0][l]; x.ms = all[1][l]; x.zt = all[2][l]; x.zs = all[3][l]; x.a = all[4][l]; }
  else x.zt = x.zs = x.a = 0;  // of a copy of warp 0
  x.template warp<NP>();
  if (job.parts == 1) { if (lane == 0) y[row] = x.result(); return; }
  float4* p = job.partial + 2 * row * job.parts;
  gather(x, p + 2 * part, p, job.counter + row, job.parts, y + row);
}

struct Span { long long head, first, last, tail; };  // elements before the vectors, a block's vectors, first element after

template <typename E> __device__ __forceinline__ Span span(const E* s, const E* t, long long n, int part, int parts) {
  constexpr int N = Ops<E>::N;
  Span r;
  if (((u64)s ^ (u64)t) & 15) { r.head = r.tail = n; r.first = r.last = 0; return r; }
  r.head = ((16 - ((u64)s & 15)) & 15) / sizeof(E);
  if (r.head > n) r.head = n;
  long long count = (n - r.head) / N;
  r.tail = r.head + count * N;
  if (parts == 1) { r.first = 0; r.last = count; }
  else {
    long long per = ((count + parts - 1) / parts + 7) / 8 * 8;
    r.first = min(part * per, count); r.last = min(r.first + per, count);
  }
  return r;
}

template <typename E> __device__ __forceinline__ void edges(State& x, const E* s, const E* t, long long n, const Span& at, int from, int step) {
  for (long long i = from; i < at.head; i += step) x.single(Ops<E>::one(t + i), Ops<E>::one(s + i));
  for (long long i = at.tail + from; i < n; i += step) x.single(Ops<E>::one(t + i), Ops<E>::one(s + i));
}

enum { PLAIN, AHEAD, SPLIT };

// ask for a block's vectors in the L2 while the kernel before this one ends: a hint, the L2 stays coherent with its stores
__device__ __forceinline__ void ahead(const uint4* p, int count) {
  u32 bytes = 16 * min(count, 4096);
  if (bytes) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(p), "r"(bytes) : "memory");
}

// G threads for each part of a row: the whole block (G == T) or a warp (G == 32 < T)
template <typename E, int T, int G, int U, int B, int MODE>
__global__ void __launch_bounds__(T, B) direct(const E* __restrict__ student, const E* __restrict__ teacher, float* __restrict__ y, long long rows, long long n, float4* partial, u32* counter, int parts, int fetch_blocks) {
  const Job job = {partial, counter, MODE == SPLIT ? parts : 1, fetch_blocks};
  const int tid = threadIdx.x % G;
  const long long row = G < T ? blockIdx.x * (long long)(T / G) + threadIdx.x / G : MODE == SPLIT ? blockIdx.x / job.parts : blockIdx.x;
  const int part = MODE == SPLIT ? blockIdx.x % job.parts : 0;
  if (G < T && row >= rows) return;
  const E* s = student + row * n;
  const E* t = teacher + row * n;
  const Span at = span<E>(s, t, n, part, job.parts);
  const uint4* sv = (const uint4*)(s + at.head) + at.first;
  const uint4* tv = (const uint4*)(t + at.head) + at.first;
  const int count = (int)(at.last - at.first);
  if (MODE == AHEAD && threadIdx.x < 2 && blockIdx.x < job.ahead) ahead(threadIdx.x ? sv : tv, count);
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  State x = {Ops<E>::one(t), Ops<E>::one(s), 0, 0, 0};
  int i = tid;
  for (; i + (U - 1) * G < count; i += U * G) {
    uint4 a[U], b[U];
#pragma unroll
    for (int k = 0; k < U; k++) { a[k] = load(tv + i + k * G); b[k] = load(sv + i + k * G); }
    x.template vectors<E, U>(a, b);
  }
  if (i < count) {
    uint4 a[U], b[U];
#pragma unroll
    for (int k = 0; k < U; k++) if (i + k * G < count) { a[k] = load(tv + i + k * G); b[k] = load(sv + i + k * G); }
#pragma unroll
    for (int k = 0; k < U; k++) if (i + k * G < count) x.template vectors<E, 1>(a + k, b + k);
  }
  edges<E>(x, s, t, n, at, part * G + tid, job.parts * G);
  if (G < T) {
    x.template warp<32>();
    if (tid == 0) y[row] = x.result();
  } else finish<T>(x, row, part, y, job);
}
"""
try:
    LaunchConfig(grid=(1,), block=(32,), programmatic_stream_serialization=True)
    PDL = True
except TypeError:
    PDL = False
PLAIN, AHEAD, SPLIT = 0, 1, 2
TYPES = {torch.bfloat16: "BF16", torch.float16: "FP16", torch.float32: "FP32"}


@functools.cache
def compiled(device, element, t, g, u, b, mode):
    """The kernel of t threads, g of them for a row's part, u vectors a thread at a time and b blocks a multiprocessor."""
    name = f"direct<{element}, {t}, {g}, {u}, {b}, {mode}>"
    options = ProgramOptions(arch="sm_90a", std="c++17")
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


# Arrival counters of split rows. They are 0 between calls: the last block of a row sets its own back. Calls of a stream
# share theirs, as they follow one another; a captured call gets its own for good, as graphs may run side by side.
POOL = 1 << 20
eager, pools = {}, {}


def counters(device, stream, size):
    if device not in pools:
        if torch.cuda.is_current_stream_capturing():
            return torch.zeros(size, dtype=torch.int32, device=device)
        pools[device] = [torch.zeros(POOL, dtype=torch.int32, device=device), 0]
    if torch.cuda.is_current_stream_capturing():
        pool, used = pools[device]
        if used + size > POOL:
            return torch.zeros(size, dtype=torch.int32, device=device)
        pools[device][1] = used + size
        return pool[used : used + size]
    held = eager.get((device, stream))
    if held is None or held.numel() < size:
        held = eager[device, stream] = torch.zeros(max(size, 4096), dtype=torch.int32, device=device)
    return held


@functools.cache
def choose(rows, n, element, processors):
    """element, threads, group, unroll, blocks a multiprocessor, mode; parts of a row, blocks that fetch ahead"""
    size = 4 if element == "FP32" else 2
    if n * size <= 4096:
        return (element, 128, 32, 4, 5, PLAIN), 1, 0
    slots = 5 * processors
    if rows < 3 * slots:  # split rows: waves of blocks, each as long as its vectors and the work of a block
        vectors = n * size / 16 / 256
        best = min(
            (-(-rows * parts // slots) * (max(vectors / parts, 1) + 3) + 0.03 * parts, parts) for parts in range(1, 65)
        )
        return (element, 256, 256, 2, 5, SPLIT if best[1] > 1 else PLAIN), best[1], 0
    if n * size <= 16384:
        if element == "FP32":
            return (element, 128, 128, 8, 5, AHEAD), 1, slots
        return (element, 128, 128, 4, 7, PLAIN), 1, 0
    if n * size < 49152 and element != "FP32":
        return (element, 256, 256, 2, 5, PLAIN), 1, 0
    return (element, 256, 256, 4, 3, PLAIN), 1, 0


@functools.cache
def multiprocessors(device):
    return torch.cuda.get_device_properties(device).multi_processor_count


def run(student, teacher, config=None, pdl=True):
    if student.device.index != torch.cuda.current_device():
        with torch.cuda.device(student.device):
            return run(student, teacher, config, pdl)
    rows, n = student.shape
    y = torch.empty(rows, dtype=torch.float32, device=student.device)
    if rows == 0:
        return y
    if n == 0:
        return y.zero_()
    if student.dtype != teacher.dtype or student.dtype not in TYPES:
        student, teacher = student.float(), teacher.float()
    student, teacher = student.contiguous(), teacher.contiguous()
    device = student.device.index
    # chosen by timing on an H200
    chosen, parts, ahead = config or choose(rows, n, TYPES[student.dtype], multiprocessors(device))
    _, t, g, *_ = chosen
    kernel = compiled(device, *chosen)
    blocks = -(-rows // (t // g)) if g < t else rows * parts
    handle = torch.cuda.current_stream(student.device).cuda_stream
    partial_at = counter_at = 0
    if parts > 1:
        partial = torch.empty(blocks * 8, dtype=torch.float32, device=student.device)
        counter = counters(device, handle, rows)
        partial_at, counter_at = partial.data_ptr(), counter.data_ptr()
    options = {"grid": (blocks,), "block": (t,)}
    if pdl and PDL:
        options["programmatic_stream_serialization"] = True
    launch(
        Stream.from_handle(handle),
        LaunchConfig(**options),
        kernel,
        student.data_ptr(),
        teacher.data_ptr(),
        y.data_ptr(),
        numpy.int64(rows),
        numpy.int64(n),
        partial_at,
        counter_at,
        numpy.int32(parts),
        numpy.int32(ahead),
    )
    return y
