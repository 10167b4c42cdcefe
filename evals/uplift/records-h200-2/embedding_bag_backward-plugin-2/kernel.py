"""embedding_bag_backward: y[v] = scale[v] * sum of grad[b] over all b and i with indices[b, i] = v; a row that no index names is 0

One cooperative kernel: a counting sort of the indices by row (block-local hash tables in front of global counters), while one
warp of each block clears the first rows of y by bulk copies and then the rows that no index names; then groups of lanes sum
equal parts of the sorted list in registers. Rows that lie inside one part are written at once; the others meet in an fp32
accumulator, and the last group to arrive writes them.
"""

import functools

import numpy
import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

RMIN = 16
RMAX = 128
THREADS = 768
UNROLL = 8
ZFIRST = 16
SPREAD = 3
PART = 4

SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef long long ll;
typedef unsigned int u32;
constexpr int NW = THREADS - 32, WORKERS = NW / 32, EPT = 2976 / NW, SLOTS = 4096, ZBYTES = 8192;

__device__ __forceinline__ void wbar() { asm volatile("bar.sync 1, %0;" ::"n"(NW) : "memory"); }

__device__ __forceinline__ u32* grid_barrier_word() {  // the driver's workspace of a cooperative launch
  u32 lo, hi;
  asm("mov.u32 %0, %%envreg1;" : "=r"(hi));
  asm("mov.u32 %0, %%envreg2;" : "=r"(lo));
  return reinterpret_cast<u32*>(((unsigned long long)hi << 32) | lo) + 1;
}

__device__ __forceinline__ void grid_arrive_wait(u32* word) {  // one thread of each block
  u32 nb = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u, old, now;
  asm volatile("atom.add.release.gpu.u32 %0,[%1],%2;" : "=r"(old) : "l"(word), "r"(nb) : "memory");
  do {
    asm volatile("ld.acquire.gpu.u32 %0,[%1];" : "=r"(now) : "l"(word) : "memory");
  } while (!((old ^ now) & 0x80000000u));
}

__device__ __forceinline__ float up(float x) { return x; }
__device__ __forceinline__ double up(double x) { return x; }
__device__ __forceinline__ float up(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float up(__half x) { return __half2float(x); }
__device__ __forceinline__ void down(float x, float& y) { y = x; }
__device__ __forceinline__ void down(double x, double& y) { y = x; }
__device__ __forceinline__ void down(float x, __nv_bfloat16& y) { y = __float2bfloat16_rn(x); }
__device__ __forceinline__ void down(float x, __half& y) { y = __float2half_rn(x); }

template <typename T, int VEC> struct alignas(VEC * sizeof(T)) Pack { T v[VEC]; };
template <typename T> struct Wide { typedef float type; };
template <> struct Wide<double> { typedef double type; };

__device__ __forceinline__ void bulk(char* dst, u32 zbuf, int size, ll policy) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(dst), "r"(zbuf), "r"(size), "l"(policy)
               : "memory");
}

__device__ __forceinline__ void clear(char* dst, ll bytes, u32 zbuf, ll policy) {  // one thread; bytes divisible by 16
  ll chunks = (bytes + ZBYTES - 1) / ZBYTES;
  for (ll c = blockIdx.x; c < chunks; c += gridDim.x) {
    ll left = bytes - c * ZBYTES;
    int size = left < ZBYTES ? (int)left : ZBYTES;
    bulk(dst + c * ZBYTES, zbuf, size, policy);
  }
}


// zeroed: accumulators (ranges x W) and arrivals (ranges x tiles of columns). counts: (V4 << shift) + 4 ints, the last 4 hold the
// cursor. Rows below vfirst are cleared at once, the others when their counters say so.
template <typename T, int VEC, int G>
__global__ void __launch_bounds__(THREADS, 1)
kernel(const T* __restrict__ grad, const ll* __restrict__ indices, const float* __restrict__ scale, T* __restrict__ y,
       char* zeroed, ll zbytes, ll accbytes, int* counts, int* offsets, int2* list, int* ranks,
       int V, int V4, int shift, int vfirst, int W, int N, int L, int R,
       int nct, int tile) {
  typedef typename Wide<T>::type A;
  __shared__ alignas(16) int keys[SLOTS];
  __shared__ alignas(16) int cnt[SLOTS];
  __shared__ alignas(128) int4 zbuf[ZBYTES / 16];
  __shared__ int wsum[32];
  __shared__ int cbase, zunit;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  u32* word = grid_barrier_word();
  const int4 zero4 = make_int4(0, 0, 0, 0);
  if (tid == 0) zunit = 0;

  // Clears the rows from vfirst on that no index names, once the counters are final. A warp takes a part of its block's rows at a time.
  auto fill = [&]() {
    const int q = W / VEC, dr = 32 / q, dc = 32 % q, rowbytes = W * (int)sizeof(T);
    const int blocks = max(1, min(8, 1024 / rowbytes));  // of 32 rows
    Pack<T, VEC> none;
#pragma unroll
    for (int i = 0; i < VEC; ++i) down((typename Wide<T>::type)0, none.v[i]);
    while (true) {
      int unit = 0;
      if (lane == 0) unit = atomicAdd(&zunit, 1);
      unit = __shfl_sync(~0u, unit, 0);
      const ll top = vfirst + ((ll)unit * gridDim.x + blockIdx.x) * (32 * blocks);
      if (top >= V) break;
      int c[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const ll r = top + k * 32 + lane;
        c[k] = k < blocks && r < V ? __ldcg(counts + (r << shift)) : 1;
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const u32 empty = __ballot_sync(~0u, c[k] == 0);
        if (empty) {
          Pack<T, VEC>* dst = reinterpret_cast<Pack<T, VEC>*>(y + (top + k * 32) * W) + lane;
          int row = lane / q, col = lane % q;
#pragma unroll 4
          for (int i = 0; i < q; ++i) {
            if (empty >> row & 1) {
              if constexpr (sizeof(none) == 16) __stcs(reinterpret_cast<int4*>(dst), zero4);
              else *dst = none;
            }
            dst += 32;
            row += dr;
            col += dc;
            if (col >= q) { col -= q; ++row; }
          }
        }
      }
    }
  };

  if (warp == WORKERS) {
    for (int i = lane; i < ZBYTES / 16; i += 32) zbuf[i] = zero4;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncwarp();
    const u32 z = (u32)__cvta_generic_to_shared(zbuf);
    const ll rowbytes = (ll)W * sizeof(T);
    ll policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    if (lane == 0) {
      clear(zeroed, zbytes, z, policy);
      clear((char*)y, vfirst * rowbytes, z, policy);
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncwarp();
    __syncthreads();  // joins the workers around their second barrier
    __syncthreads();
    fill();
    return;
  } else {
    // 0: clear the counters
    for (int i = blockIdx.x * NW + tid; i < (V4 << shift) / 4 + 1; i += gridDim.x * NW) reinterpret_cast<int4*>(counts)[i] = zero4;
    // 1: rank of each index among the equal ones
    int v[EPT], rk[EPT];
    const bool single = (ll)tile * gridDim.x >= N;
    bool first = true;
    for (ll base = (ll)blockIdx.x * tile; first || base < N; base += (ll)gridDim.x * tile) {
      int slot[EPT];
#pragma unroll
      for (int e = 0; e < EPT; ++e) {
        int l = tid + e * NW;
        v[e] = l < tile && base + l < N ? (int)indices[base + l] : -1;
      }
      if (!first) wbar();
      for (int i = tid; i < SLOTS / 4; i += NW) {
        reinterpret_cast<int4*>(keys)[i] = make_int4(-1, -1, -1, -1);
        reinterpret_cast<int4*>(cnt)[i] = zero4;
      }
      wbar();
#pragma unroll
      for (int e = 0; e < EPT; ++e)
        if (v[e] >= 0) {
          u32 s = ((u32)v[e] * 2654435761u) >> 20;
          while (true) {
            int k = *(volatile int*)&keys[s];
            if (k == v[e]) break;
            if (k == -1) {
              k = atomicCAS(&keys[s], -1, v[e]);
              if (k == -1 || k == v[e]) break;
            }
            s = (s + 1) & (SLOTS - 1);
          }
          slot[e] = s;
          rk[e] = atomicAdd(&cnt[s], 1);
        }
      wbar();
      if (first) {
        if (tid == 0) grid_arrive_wait(word);
        wbar();
      }
      int b[EPT];
#pragma unroll
      for (int e = 0; e < EPT; ++e)
        if (v[e] >= 0 && rk[e] == 0) b[e] = atomicAdd(counts + ((ll)v[e] << shift), cnt[slot[e]]);
#pragma unroll
      for (int e = 0; e < EPT; ++e)
        if (v[e] >= 0 && rk[e] == 0) cnt[slot[e]] = b[e];
      wbar();
#pragma unroll
      for (int e = 0; e < EPT; ++e)
        if (v[e] >= 0) {
          rk[e] += cnt[slot[e]];
          if (!single) ranks[base + tid + e * NW] = rk[e];
        }
      first = false;
    }
    __syncthreads();
    if (tid == 0) grid_arrive_wait(word);
    __syncthreads();
    // 2: a place in the list for each row, in any order
    for (ll base = (ll)blockIdx.x * (NW * 4); base < V4; base += (ll)gridDim.x * (NW * 4)) {
      ll i = base + tid * 4;
      int4 c = zero4;
      if (i < V4) {
        if (shift == 0) {
          c = __ldcg(reinterpret_cast<int4*>(counts + i));
        } else {
          c.x = __ldcg(counts + (i << shift));
          c.y = __ldcg(counts + ((i + 1) << shift));
          c.z = __ldcg(counts + ((i + 2) << shift));
          c.w = __ldcg(counts + ((i + 3) << shift));
        }
      }
      int sum = c.x + c.y + c.z + c.w, inc = sum;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        int o = __shfl_up_sync(~0u, inc, d);
        if (lane >= d) inc += o;
      }
      if (lane == 31) wsum[warp] = inc;
      wbar();
      if (warp == 0) {
        int w = lane < WORKERS ? wsum[lane] : 0, winc = w;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
          int o = __shfl_up_sync(~0u, winc, d);
          if (lane >= d) winc += o;
        }
        if (lane < WORKERS) wsum[lane] = winc - w;
        if (lane == 31) cbase = atomicAdd(counts + ((ll)V4 << shift), winc);
      }
      wbar();
      int o = cbase + wsum[warp] + inc - sum;
      if (i < V4) {
        int4 r;
        r.x = o; r.y = r.x + c.x; r.z = r.y + c.y; r.w = r.z + c.z;
        *reinterpret_cast<int4*>(offsets + i) = r;
      }
      wbar();
    }
    wbar();
    if (tid == 0) grid_arrive_wait(word);
    wbar();
    // 3: the sorted list
    if (single) {
      int base = blockIdx.x * tile + tid, p[EPT];
#pragma unroll
      for (int e = 0; e < EPT; ++e)
        if (v[e] >= 0) p[e] = offsets[v[e]] + rk[e];
#pragma unroll
      for (int e = 0; e < EPT; ++e)
        if (v[e] >= 0) list[p[e]] = make_int2(v[e], (base + e * NW) / L);
    } else {
#pragma unroll 2
      for (ll j = (ll)blockIdx.x * NW + tid; j < N; j += (ll)gridDim.x * NW) {
        int u = (int)indices[j];
        list[offsets[u] + ranks[j]] = make_int2(u, (int)j / L);
      }
    }
  }
  wbar();
  if (tid == 0) grid_arrive_wait(word);
  wbar();

  // 4: sums. A group of G lanes takes R entries of the list and G * VEC columns.
  const int gl = lane & (G - 1), gw = lane / G;
  const int ranges = (int)(((ll)N + R - 1) / R);
  const ll items = (ll)ranges * nct;
  A* accs = reinterpret_cast<A*>(zeroed);
  int* arrive = reinterpret_cast<int*>(zeroed + accbytes);
  constexpr int U = G < UNROLL ? G : UNROLL;
  for (ll item0 = ((ll)warp * gridDim.x + blockIdx.x) * (32 / G); item0 < items; item0 += (ll)gridDim.x * (NW / G)) {
    const ll item = item0 + gw;
    const bool live = item < items;
    const int ct = nct == 1 || !live ? 0 : (int)(item / ranges), range = live ? (int)(item - (ll)ct * ranges) : ranges;
    const int s = live ? range * R : N, e = (int)min((ll)N, (ll)s + R);
    const int col = (ct * G + gl) * VEC;
    const bool on = col < W;
    const T* g = grad + (on ? col : 0);
    const int2 none = make_int2(-1, 0);
    int2 next = s + gl < e ? list[s + gl] : none;
    const int before = s > 0 ? list[s - 1].x : -1, after = e < N ? list[e].x : -1;
    int cur = -1;
    float cs = 0;
    A a[VEC];
#pragma unroll
    for (int i = 0; i < VEC; ++i) a[i] = 0;

    // The first and the last row may go on in other ranges: their sums meet in the accumulator of the range where the row starts.
    const int front = __shfl_sync(~0u, next.x, 0, G);
    const bool open0 = front >= 0 && front == before;
    int slot0 = range;
    if (open0) slot0 = __ldcg(offsets + before) / R;
    auto store = [&]() {
      if (on) {
        Pack<T, VEC> out;
#pragma unroll
        for (int i = 0; i < VEC; ++i) down(a[i] * (A)cs, out.v[i]);
        *reinterpret_cast<Pack<T, VEC>*>(y + (ll)cur * W + col) = out;
      }
    };
    auto meet = [&](int slot) {
      if (on) {
        A* to = accs + (ll)slot * W + col;
        if constexpr (sizeof(A) == 4 && VEC % 4 == 0) {
#pragma unroll
          for (int i = 0; i < VEC; i += 4)
            asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + i), "f"((float)a[i]), "f"((float)a[i + 1]), "f"((float)a[i + 2]), "f"((float)a[i + 3]) : "memory");
        } else {
#pragma unroll
          for (int i = 0; i < VEC; ++i) atomicAdd(to + i, a[i]);
        }
      }
    };
    auto finish = [&](int slot, int v) {  // the last group to arrive
      __threadfence();
      if (on) {
        const A* from = accs + (ll)slot * W + col;
        const float f = scale[v];
        Pack<T, VEC> out;
#pragma unroll
        for (int i = 0; i < VEC; ++i) down(__ldcg(from + i) * (A)f, out.v[i]);
        *reinterpret_cast<Pack<T, VEC>*>(y + (ll)v * W + col) = out;
      }
    };

    for (int k = 0; k < R; k += G) {  // all groups of a warp stay together
      const int2 entry = next;
      next = k + G < R && s + k + G + gl < e ? list[s + k + G + gl] : none;
      const float es = scale[max(entry.x, 0)];
#pragma unroll 1
      for (int j = 0; j < G && k + j < R; j += U) {
        Pack<T, VEC> x[U];
#pragma unroll
        for (int u = 0; u < U; ++u) x[u] = *reinterpret_cast<const Pack<T, VEC>*>(g + (ll)__shfl_sync(~0u, entry.y, j + u, G) * W);
#pragma unroll
        for (int u = 0; u < U; ++u) {
          const int nv = __shfl_sync(~0u, entry.x, j + u, G);
          const float ns = __shfl_sync(~0u, es, j + u, G);
          if (nv != cur) {
            if (cur >= 0) {
              if (cur == before) meet(slot0);
              else store();
            }
            cur = nv;
            cs = ns;
#pragma unroll
            for (int i = 0; i < VEC; ++i) a[i] = 0;
          }
          __syncwarp();
#pragma unroll
          for (int i = 0; i < VEC; ++i) a[i] += up(x[u].v[i]);
        }
      }
    }
    const bool open1 = cur >= 0 && cur == after && cur != before;
    if (cur >= 0) {
      if (cur == before) meet(slot0);
      else if (open1) meet(range);
      else store();
    }
    __syncwarp();
    int last = 0;  // lane 0 of the group tells of the first row, lane 1 of the last
    if ((gl == 0 && open0) || (gl == 1 && open1)) {
      const int v = gl == 0 ? before : after, slot = gl == 0 ? slot0 : range;
      const int end = __ldcg(offsets + v) + __ldcg(counts + ((ll)v << shift)) - 1;
      int done;
      asm volatile("atom.add.release.gpu.u32 %0,[%1],1;" : "=r"(done) : "l"(arrive + (ll)slot * nct + ct) : "memory");
      last = done == end / R - slot;
    }
    __syncwarp();
    if (__shfl_sync(~0u, last, 0, G)) finish(slot0, before);
    __syncwarp();
    if (__shfl_sync(~0u, last, 1, G)) finish(range, after);
    __syncwarp();
  }
  __syncwarp();
  fill();
}
"""
TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float16: "__half", torch.float32: "float", torch.float64: "double"}


@functools.cache
def compiled(name: str):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    source = f"#define THREADS {THREADS}\n#define UNROLL {UNROLL}\n" + SOURCE
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    return Program(source, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


@functools.cache
def processors(index: int) -> int:
    return torch.cuda.get_device_properties(index).multi_processor_count


@functools.cache
def cooperative(grid: int):
    try:
        return LaunchConfig(grid=(grid,), block=(THREADS,), is_cooperative=True)
    except TypeError:  # the name in other releases
        return LaunchConfig(grid=(grid,), block=(THREADS,), cooperative_launch=True)


@functools.cache
def plan(vocabulary: int, width: int, n: int, size: int, wide: int, grid: int):
    vector = 16
    while vector > size and width * size % vector:
        vector //= 2
    vec = vector // size
    lanes = -(-width // vec)
    group = min((4, 8, 16, 32), key=lambda g: (-(-lanes // g) * (g + 2), -g))
    tiles = -(-lanes // group)
    groups = grid * ((THREADS - 32) // group)
    part = -(-n * tiles // groups)
    part = min(max(-(-part * PART // 32) * 8, RMIN), RMAX)
    ranges = -(-n // part)
    tile = min(max(-(-n // (grid * 32)) * 32, 512), (THREADS - 32) * (2976 // (THREADS - 32)))
    shift = SPREAD if vocabulary <= 4096 else 0  # few counters: one a sector, so that more slices of the L2 cache share the work
    first = min(vocabulary, ZFIRST * 2**20 // (width * size)) if width * size % 16 == 0 else 0
    sizes = dict(
        acc=ranges * width * wide, arrive=ranges * tiles * 4, counts=((-(-vocabulary // 4) * 4 << shift) + 4) * 4,
        offsets=vocabulary * 4, list=n * 8, ranks=4 if tile * grid >= n else n * 4,
    )
    at, total = {}, 0
    for key, value in sizes.items():
        at[key] = total
        total += -(-value // 16) * 16
    return vec, group, tiles, part, tile, shift, first, at, total


def run(grad, indices, scale):
    """Returns y.

    grad: (bags, width), the workload's type.
    indices: (bags, length), int64. 0 <= index < vocabulary; repeats count
    scale: (vocabulary), float32.
    y: (vocabulary, width), the workload's type.
    """
    grad, indices, scale = grad.contiguous(), indices.contiguous(), scale.contiguous()
    vocabulary, width, n, length = scale.shape[0], grad.shape[1], indices.numel(), indices.shape[1]
    y = torch.empty((vocabulary, width), dtype=grad.dtype, device=grad.device)
    if y.numel() == 0:
        return y
    size = grad.element_size()
    if grad.data_ptr() % 16:
        grad = grad.clone()
    grid = processors(grad.device.index)
    vec, group, tiles, part, tile, shift, first, at, total = plan(vocabulary, width, n, size, max(size, 4), grid)
    space = torch.empty(total, dtype=torch.uint8, device=grad.device)
    base = space.data_ptr()
    stream = Stream.from_handle(torch.cuda.current_stream(grad.device).cuda_stream)
    config = cooperative(grid)
    i32, i64 = numpy.int32, numpy.int64
    kernel = compiled(f"kernel<{TYPES[grad.dtype]}, {vec}, {group}>")
    launch(
        stream, config, kernel, grad.data_ptr(), indices.data_ptr(), scale.data_ptr(), y.data_ptr(), base, i64(at["counts"]), i64(at["arrive"]), base + at["counts"], base + at["offsets"], base + at["list"],
        base + at["ranks"], i32(vocabulary), i32(-(-vocabulary // 4) * 4), i32(shift), i32(first), i32(width), i32(n), i32(max(length, 1)), i32(part), i32(tiles), i32(tile),
    )
    return y
