"""cumulative_product: y[r, c] = x[r, 0] * x[r, 1] * ... * x[r, c]

Short rows: a group of lanes scans a row. Longer rows: a block or a cluster of blocks walks along a row. Few very long rows:
a first kernel takes the products of tiles, a second one scans the tiles. Loads and stores have 16 bytes, from the 16-byte
boundary at or before the row's start; values outside of the row count as one.
"""

import functools

import numpy
import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
typedef long long ll;
#define FULL 0xffffffffu

// 0: fp32, 1: bf16, 2: fp16, 3: fp64
template <int K> struct Ty { typedef float A; typedef unsigned short S; static const int E = 8; };
template <> struct Ty<0> { typedef float A; typedef unsigned S; static const int E = 4; };
template <> struct Ty<3> { typedef double A; typedef unsigned long long S; static const int E = 2; };

template <int K> __device__ __forceinline__ typename Ty<K>::A widen(typename Ty<K>::S s) {
  if constexpr (K == 0) return __uint_as_float(s);
  else if constexpr (K == 1) return __uint_as_float((unsigned)s << 16);
  else if constexpr (K == 3) return __longlong_as_double((ll)s);
  else { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(s)); return f; }
}
template <int K> __device__ __forceinline__ typename Ty<K>::S narrow(typename Ty<K>::A a) {
  if constexpr (K == 0) return __float_as_uint(a);
  else if constexpr (K == 3) return (unsigned long long)__double_as_longlong(a);
  else {
    unsigned short s;
    if constexpr (K == 1) asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(s) : "f"(a));
    else asm("cvt.rn.f16.f32 %0, %1;" : "=h"(s) : "f"(a));
    return s;
  }
}
template <int K> __device__ __forceinline__ void unpack(uint4 r, typename Ty<K>::A* v) {
  unsigned w[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (K == 0) v[i] = __uint_as_float(w[i]);
    else if constexpr (K == 1) { v[2 * i] = __uint_as_float(w[i] << 16); v[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u); }
    else if constexpr (K == 2) { v[2 * i] = widen<2>(w[i] & 0xffff); v[2 * i + 1] = widen<2>(w[i] >> 16); }
    else if (i < 2) v[i] = __longlong_as_double((ll)w[2 * i] | ((ll)w[2 * i + 1] << 32));
  }
}
template <int K> __device__ __forceinline__ uint4 pack(const typename Ty<K>::A* v) {
  unsigned w[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (K == 0) w[i] = __float_as_uint(v[i]);
    else if constexpr (K == 1) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w[i]) : "f"(v[2 * i + 1]), "f"(v[2 * i]));
    else if constexpr (K == 2) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w[i]) : "f"(v[2 * i + 1]), "f"(v[2 * i]));
    else { ll b = __double_as_longlong(v[i / 2]); w[i] = (unsigned)(i & 1 ? b >> 32 : b); }
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}
__device__ __forceinline__ uint4 ld16(const void* p) {
  uint4 r;
#if LDH == 1
  asm volatile("ld.global.cs.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
#elif LDH == 2
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
#else
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
#endif
  return r;
}
__device__ __forceinline__ void st16(void* p, uint4 r) {
#if STH == 1
  asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p), "r"(r.x), "r"(r.y), "r"(r.z), "r"(r.w) : "memory");
#else
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p), "r"(r.x), "r"(r.y), "r"(r.z), "r"(r.w) : "memory");
#endif
}

// A row, seen from the 16-byte boundary at or before its start: its values are at [a, end).
template <int K, bool AL, typename I> struct Row {
  typedef typename Ty<K>::A A;
  typedef typename Ty<K>::S S;
  static const int E = Ty<K>::E;
  const S* x; S* y; ll room; int a; I end;
  __device__ __forceinline__ Row(const void* px, void* py, ll row, I cols, ll total) {
    ll start = row * (ll)cols;
    a = AL ? 0 : (int)(start % E);
    start -= a;
    x = (const S*)px + start; y = (S*)py + start;
    room = total - start; end = cols + a;
  }
  __device__ __forceinline__ uint4 load(I j) const {
    if (j >= end) return make_uint4(0, 0, 0, 0);
    if (AL || (ll)j + E <= room) return ld16(x + j);
    S s[E];
#pragma unroll
    for (int e = 0; e < E; ++e) s[e] = (ll)j + e < room ? x[j + e] : (S)0;
    unsigned w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (sizeof(S) == 4) w[i] = s[i];
      else if constexpr (sizeof(S) == 2) w[i] = s[2 * i] | ((unsigned)s[2 * i + 1] << 16);
      else w[i] = (unsigned)(i & 1 ? s[i / 2] >> 32 : s[i / 2]);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
  }
  __device__ __forceinline__ void values(I j, uint4 raw, A* v) const {
    unpack<K>(raw, v);
    if (AL) {
      if (j >= end) {
#pragma unroll
        for (int e = 0; e < E; ++e) v[e] = 1;
      }
    } else if (j < a || j + E > end) {
#pragma unroll
      for (int e = 0; e < E; ++e) if (j + e < a || j + e >= end) v[e] = 1;
    }
  }
  __device__ __forceinline__ void store(I j, const A* v) const {
    if (j >= end) return;
    if (AL || (j >= a && j + E <= end)) { st16(y + j, pack<K>(v)); return; }
#pragma unroll
    for (int e = 0; e < E; ++e) if (j + e >= a && j + e < end) y[j + e] = narrow<K>(v[e]);
  }
};

// Scans U pieces of G lanes each, in their order. v becomes the scan within a lane's vector, t what is before it; returns
// the product of all.
template <int G, int U, int E, typename A> __device__ __forceinline__ A scan(A (&v)[U][E], A (&t)[U], int lane) {
#pragma unroll
  for (int i = 0; i < U; ++i) {
#pragma unroll
    for (int e = 1; e < E; ++e) v[i][e] *= v[i][e - 1];
    t[i] = v[i][E - 1];
  }
#pragma unroll
  for (int d = 1; d < G; d <<= 1) {
#pragma unroll
    for (int i = 0; i < U; ++i) {
      A below = __shfl_up_sync(FULL, t[i], d, G);
      if (lane >= d) t[i] *= below;
    }
  }
  A run = 1;
#pragma unroll
  for (int i = 0; i < U; ++i) {
    A all = t[i], before = 1;
    if (G > 1) {
      all = __shfl_sync(FULL, t[i], G - 1, G);
      before = __shfl_up_sync(FULL, t[i], 1, G);
      if (lane == 0) before = 1;
    }
    t[i] = run * before;
    run *= all;
  }
  return run;
}

// G lanes a row.
template <int K, int G, int U, bool AL, typename I>
__global__ void __launch_bounds__(LB) lanes(const void* px, void* py, ll rows, ll cols, ll total) {
  typedef typename Ty<K>::A A;
  const int E = Ty<K>::E;
  const int lane = threadIdx.x & (G - 1);
  const ll row = blockIdx.x * (ll)(LB / G) + threadIdx.x / G;
  Row<K, AL, I> r(px, py, row, (I)cols, total);
  if (row >= rows) r.end = 0, r.a = 0;
  const I most = (I)cols + (AL ? 0 : E - 1);
  A carry = 1;
  for (I at = 0; at < most; at += G * U * E) {
    uint4 raw[U];
#pragma unroll
    for (int i = 0; i < U; ++i) raw[i] = r.load(at + (i * G + lane) * E);
    A v[U][E], t[U];
#pragma unroll
    for (int i = 0; i < U; ++i) r.values(at + (i * G + lane) * E, raw[i], v[i]);
    const A all = scan<G, U, E, A>(v, t, lane);
#pragma unroll
    for (int i = 0; i < U; ++i) {
      const A f = carry * t[i];
#pragma unroll
      for (int e = 0; e < E; ++e) v[i][e] *= f;
      r.store(at + (i * G + lane) * E, v[i]);
    }
    carry *= all;
  }
}

template <typename A> __device__ __forceinline__ A product(A v) {
#pragma unroll
  for (int d = 16; d; d >>= 1) v *= __shfl_xor_sync(FULL, v, d);
  return v;
}
__device__ __forceinline__ unsigned shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
// Writes v into another block's shared memory and counts its bytes at that block's barrier: no fence, no barrier of the cluster.
template <typename A> __device__ __forceinline__ void send(const void* p, const void* bar, int rank, A v) {
  unsigned at, b;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared(p)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(b) : "r"(shared(bar)), "r"(rank));
  if constexpr (sizeof(A) == 4)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" :: "r"(at), "r"(__float_as_uint(v)), "r"(b) : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" :: "r"(at), "l"(__double_as_longlong(v)), "r"(b) : "memory");
}
__device__ __forceinline__ void expect(const void* bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void await(const void* bar, int phase) {
  asm volatile("{.reg .pred P; AGAIN_%=: mbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1; @P bra DONE_%=; bra AGAIN_%=; DONE_%=: }"
               :: "r"(shared(bar)), "r"(phase) : "memory");
}

// C blocks of W warps walk along a row. SPLIT: a block has `each` chunks of a row; `tot` has the products of the tiles.
template <int K, int W, int U, int C, bool AL, typename I, bool SPLIT>
__global__ void __launch_bounds__(W * 32) blocks(const void* px, void* py, ll cols, ll total, ll each, int tiles,
                                                 const typename Ty<K>::A* tot) {
  typedef typename Ty<K>::A A;
  const int E = Ty<K>::E, NT = C * W, SEG = 32 * U * E;
  __shared__ A sums[2][NT], earlier[W];
  __shared__ unsigned long long bars[2];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const unsigned row = SPLIT ? blockIdx.y : blockIdx.x / C;
  const int part = SPLIT ? blockIdx.x : blockIdx.x % C;
  const int mine = (SPLIT ? 0 : part * W) + warp;
  Row<K, AL, I> r(px, py, row, (I)cols, total);
  const I chunk = NT * SEG;
  I at = SPLIT ? (I)part * (I)each * chunk : 0;
  I stop = (I)cols + (AL ? 0 : E - 1);
  if (SPLIT && part + 1 < tiles) stop = at + (I)each * chunk;
  const I own = (I)mine * SEG + lane * E;
  if (C > 1) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared(bars)) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared(bars + 1)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  }
  uint4 raw[PD][U];
#pragma unroll
  for (int q = 0; q < PD; ++q)
#pragma unroll
    for (int i = 0; i < U; ++i)
      if (q == 0 || at + q * chunk < stop) raw[q][i] = r.load(at + q * chunk + own + i * 32 * E);
  A carry = 1;
  bool first = true;
  int p = 0, phase = 0;
  for (; at < stop; at += chunk, phase ^= p, p ^= 1) {
    A v[U][E], t[U];
#pragma unroll
    for (int i = 0; i < U; ++i) r.values(at + own + i * 32 * E, raw[0][i], v[i]);
#pragma unroll
    for (int q = 1; q < PD; ++q)
#pragma unroll
      for (int i = 0; i < U; ++i) raw[q - 1][i] = raw[q][i];
    if (at + PD * chunk < stop) {
#pragma unroll
      for (int i = 0; i < U; ++i) raw[PD - 1][i] = r.load(at + PD * chunk + own + i * 32 * E);
    }
    const A total_w = scan<32, U, E, A>(v, t, lane);
    if (C > 1) {
      if (first) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
      if (threadIdx.x == 0) expect(bars + p, NT * sizeof(A));
      if (lane < C) send(&sums[p][mine], bars + p, lane, total_w);
      await(bars + p, phase);
    } else {
      if (SPLIT && first) {
        asm volatile("griddepcontrol.wait;" ::: "memory");
        const A* before = tot + (ll)row * (tiles - 1);
        A c = 1;
#pragma unroll 2
        for (int i = threadIdx.x; i < part; i += W * 32) c *= __ldcg(before + i);
        c = product(c);
        if (lane == 0) earlier[warp] = c;
      }
      if (lane == 0) sums[p][mine] = total_w;
      __syncthreads();
    }
    A before = 1, all = 1;
    if (SPLIT && first && lane < W) before = all = earlier[lane];
    first = false;
#pragma unroll
    for (int i = 0; i < NT; i += 32) {
      const A s = i + lane < NT ? sums[p][i + lane] : (A)1;
      all *= s;
      if (i + lane < mine) before *= s;
    }
    before = product(before) * carry;
    carry *= product(all);
#pragma unroll
    for (int i = 0; i < U; ++i) {
      const A f = before * t[i];
#pragma unroll
      for (int e = 0; e < E; ++e) v[i][e] *= f;
      r.store(at + own + i * 32 * E, v[i]);
    }
  }
}

// Short rows at any alignment: a block has `group` rows, one flat piece that starts at 16 bytes, and scans it with a new
// start at each row. magic: 2^32 / cols, rounded up.
template <int K, int W, int U>
__global__ void __launch_bounds__(W * 32) flat(const void* px, void* py, int cols, ll total, int group, unsigned magic) {
  typedef typename Ty<K>::A A;
  typedef typename Ty<K>::S S;
  const int E = Ty<K>::E, CH = W * 32 * U * E;
  __shared__ A sums[2][W];
  __shared__ bool heads[2][W];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const ll start = blockIdx.x * (ll)group * cols;
  const int size = total - start < (ll)group * cols ? (int)(total - start) : group * cols;
  Row<K, false, int> r(px, py, 0, 0, 0);
  r.x += start; r.y += start; r.a = 0; r.end = size; r.room = total - start;
  A carry = 1;
  int p = 0;
  for (int at = 0; at < size; at += CH, p ^= 1) {
    const int own = at + (warp * 32 * U + lane) * E;
    uint4 raw[U];
#pragma unroll
    for (int i = 0; i < U; ++i) raw[i] = r.load(own + i * 32 * E);
    A v[U][E], t[U], f[U];
    int s[U];
    A run = 1;
    bool open[U], any = false;
#pragma unroll
    for (int i = 0; i < U; ++i) {
      const unsigned pos = own + i * 32 * E;
      const int m = cols == 1 ? 0 : (int)(pos - __umulhi(pos, magic) * cols);
      s[i] = m ? cols - m : 0;
      unpack<K>(raw[i], v[i]);
      int next = s[i];
      if (next == 0) next = cols;
#pragma unroll
      for (int e = 1; e < E; ++e) {
        if (e == next) next += cols;
        else v[i][e] *= v[i][e - 1];
      }
      t[i] = v[i][E - 1];
    }
#pragma unroll
    for (int i = 0; i < U; ++i) {
      const unsigned mask = __ballot_sync(FULL, s[i] < E);
      const unsigned upto = mask & (FULL >> (31 - lane));
      const int head = upto ? 31 - __clz(upto) : 0;
#pragma unroll
      for (int d = 1; d < 32; d <<= 1) {
        const A below = __shfl_up_sync(FULL, t[i], d);
        if (lane - d >= head) t[i] *= below;
      }
      const A all = __shfl_sync(FULL, t[i], 31);
      f[i] = __shfl_up_sync(FULL, t[i], 1);
      if (lane == 0) f[i] = 1;
      const bool none = (mask & ((1u << lane) - 1)) == 0;
      if (none) f[i] *= run;
      open[i] = none && !any;
      run = mask ? all : run * all;
      any |= mask != 0;
    }
    if (lane == 0) sums[p][warp] = run, heads[p][warp] = any;
    __syncthreads();
    A before = 1;
#pragma unroll
    for (int w = 0; w < W; ++w) {
      if (w == warp) before = carry;
      carry = heads[p][w] ? sums[p][w] : carry * sums[p][w];
    }
#pragma unroll
    for (int i = 0; i < U; ++i) {
      if (open[i]) f[i] *= before;
#pragma unroll
      for (int e = 0; e < E; ++e) if (e < s[i]) v[i][e] *= f[i];
      r.store(own + i * 32 * E, v[i]);
    }
  }
}

// The product of each tile but the last one of a row.
template <int K, int W, int U, bool AL, typename I>
__global__ void __launch_bounds__(W * 32) totals(const void* px, ll cols, ll total, ll each, int tiles, typename Ty<K>::A* tot) {
  typedef typename Ty<K>::A A;
  const int E = Ty<K>::E, SEG = 32 * U * E;
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  __shared__ A sums[W];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const unsigned row = blockIdx.y;
  const int part = blockIdx.x;
  Row<K, AL, I> r(px, nullptr, row, (I)cols, total);
  const I chunk = W * SEG;
  I at = (I)part * (I)each * chunk;
  const I stop = at + (I)each * chunk;
  const I own = (I)warp * SEG + lane * E;
  A c = 1;
  for (; at < stop; at += chunk) {
    uint4 raw[U];
#pragma unroll
    for (int i = 0; i < U; ++i) raw[i] = r.load(at + own + i * 32 * E);
#pragma unroll
    for (int i = 0; i < U; ++i) {
      A v[E];
      r.values(at + own + i * 32 * E, raw[i], v);
#pragma unroll
      for (int e = 1; e < E; ++e) v[0] *= v[e];
      c *= v[0];
    }
  }
  c = product(c);
  if (lane == 0) sums[warp] = c;
  __syncthreads();
  if (warp == 0) {
    c = product(lane < W ? sums[lane] : (A)1);
    if (lane == 0) tot[(ll)row * gridDim.x + part] = c;
  }
}
"""
TYPES = {torch.float32: (0, 4), torch.bfloat16: (1, 8), torch.float16: (2, 8), torch.float64: (3, 2)}

LDH = 0  # loads: 0 plain, 1 evict first, 2 no L1
PD = 1  # chunks that a block loads ahead
LB = 128  # threads of a block of short rows
SEG = 64  # most vectors of a row at any alignment that is part of a flat piece
STH = 0  # stores: 0 plain, 1 evict first
SHORT = 2  # vectors of a thread and chunk, in blocks, where the row fits one chunk
LONG = 4  # otherwise
LANES = 128  # most vectors of a row for a group of lanes
WARPS = 8  # most warps of a block
WANT = 3000  # warps that should run
CNEED = 4  # warps of a block that a row should fill before it is cut again
CMAX = 8  # most blocks of a cluster
SPLIT = 16  # fewer rows than this are split over two kernels
SW = 8  # warps of a block there
SEU = 16  # values of a thread and chunk there
SBLOCKS = 1056  # most blocks there
PDL = 1


@functools.cache
def compiled(name: str):
    options = ProgramOptions(arch="sm_90a", std="c++17")
    source = f"#define LDH {LDH}\n#define STH {STH}\n#define PD {PD}\n#define LB {LB}\n" + SOURCE
    return Program(source, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


def up(a, b):
    return -(-a // b)


@functools.lru_cache(maxsize=4096)
def plan(rows: int, cols: int, kind: int, e: int):
    """The kernels' names, launches and numbers for a size."""
    flat = cols % e == 0
    window = cols + (0 if flat else e - 1)
    vecs = up(window, e)
    tail = f"{'true' if flat else 'false'}, {'int' if cols < 1 << 30 else 'long long'}"
    if not flat and vecs <= SEG:
        fill = [k * cols / (up(k * cols, 256) * 256) for k in range(1, max(16, 512 // cols) + 1)]
        group = next((k for k, share in enumerate(fill, 1) if share > 0.8), fill.index(max(fill)) + 1) * e
        group = min(group, up(rows, e) * e)
        return "flat", f"flat<{kind}, 4, 2>", LaunchConfig(grid=(up(rows, group),), block=(128,)), group, min(up(1 << 32, cols), (1 << 32) - 1)
    if vecs <= LANES:
        g = 1
        while g < vecs and g < 32:
            g *= 2
        u = up(vecs, g)
        return "lanes", f"lanes<{kind}, {g}, {u}, {tail}>", LaunchConfig(grid=(up(rows, LB // g),), block=(LB,))
    if rows < SPLIT and vecs > SW * 32 * max(SEU // e, 1) * 8:
        u = max(SEU // e, 1)
        chunks = up(vecs, SW * 32 * u)
        each = up(chunks * rows, SBLOCKS)
        tiles = up(chunks, each)
        if tiles > 1:
            return (
                "split", f"totals<{kind}, {SW}, {u}, {tail}>", LaunchConfig(grid=(tiles - 1, rows), block=(SW * 32,)),
                f"blocks<{kind}, {SW}, {u}, 1, {tail}, true>",
                LaunchConfig(grid=(tiles, rows), block=(SW * 32,), programmatic_stream_serialization=bool(PDL)),
                each, tiles,
            )
    u = SHORT if vecs <= WARPS * 32 * SHORT else LONG
    need = up(vecs, 32 * u)  # warps for the whole row at once
    c = 1
    while c < CMAX and rows * c * min(WARPS, up(need, c)) < WANT and need >= c * 2 * min(WARPS, CNEED):
        c *= 2
    most = WARPS
    if c > 1 and rows * c * WARPS > WANT and need >= 4 * c * WARPS:
        most = WARPS // 2  # enough blocks: smaller ones wait less for each other
    steps = up(need, c * most)
    w = up(need, c * steps)
    name = f"blocks<{kind}, {w}, {u}, {c}, {tail}, false>"
    if c == 1:
        return "blocks", name, LaunchConfig(grid=(rows,), block=(w * 32,))
    return "blocks", name, LaunchConfig(grid=(rows,), cluster=(c,), block=(w * 32,))


def run(x):
    x = x.contiguous()
    if x.data_ptr() % 16:
        x = x.clone()
    y = torch.empty_like(x)
    total = x.numel()
    if total == 0:
        return y
    rows, cols = x.shape
    kind, e = TYPES[x.dtype]
    how = plan(rows, cols, kind, e)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    i64 = numpy.int64
    if how[0] == "lanes":
        launch(stream, how[2], compiled(how[1]), x.data_ptr(), y.data_ptr(), i64(rows), i64(cols), i64(total))
    elif how[0] == "flat":
        launch(stream, how[2], compiled(how[1]), x.data_ptr(), y.data_ptr(), numpy.int32(cols), i64(total), numpy.int32(how[3]), numpy.uint32(how[4]))
    elif how[0] == "blocks":
        launch(stream, how[2], compiled(how[1]), x.data_ptr(), y.data_ptr(), i64(cols), i64(total), i64(0), numpy.int32(1), i64(0))
    else:
        _, first, first_config, second, second_config, each, tiles = how
        tot = torch.empty(rows * (tiles - 1), dtype=torch.float64 if kind == 3 else torch.float32, device=x.device)
        launch(stream, first_config, compiled(first), x.data_ptr(), i64(cols), i64(total), i64(each), numpy.int32(tiles), tot.data_ptr())
        launch(stream, second_config, compiled(second), x.data_ptr(), y.data_ptr(), i64(cols), i64(total), i64(each), numpy.int32(tiles), tot.data_ptr())
    return y
