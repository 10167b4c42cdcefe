"""group_norm over 32 groups: one thread-block cluster per group, data read from DRAM once.

Each CTA of a cluster owns a slice [R | S | G] of its group: R is kept in registers, S in shared memory (bulk copies),
G (whatever does not fit) is read again, from L2. Statistics: shifted sums per thread, merged with Chan's formula over
the warp and then, through distributed shared memory, over the cluster.
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;
struct bf16 { u16 v; };
struct f16 { u16 v; };

__device__ __forceinline__ float up(bf16, u16 v) { return __uint_as_float((u32)v << 16); }
__device__ __forceinline__ float up(f16, u16 v) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v)); return f; }
__device__ __forceinline__ float up(float, u32 v) { return __uint_as_float(v); }
__device__ __forceinline__ u16 down(bf16, float f) { u16 v; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(v) : "f"(f)); return v; }
__device__ __forceinline__ u16 down(f16, float f) { u16 v; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(v) : "f"(f)); return v; }
__device__ __forceinline__ u32 down(float, float f) { return __float_as_uint(f); }

template <typename T, int MODE> struct Pack;   // a unit of access

template <> struct Pack<float, 0> {
  typedef uint4 V; static const int N = 4;
  static __device__ __forceinline__ void get(const V& v, float* f) {
    f[0] = __uint_as_float(v.x); f[1] = __uint_as_float(v.y); f[2] = __uint_as_float(v.z); f[3] = __uint_as_float(v.w);
  }
  static __device__ __forceinline__ V put(const float* f) {
    return make_uint4(__float_as_uint(f[0]), __float_as_uint(f[1]), __float_as_uint(f[2]), __float_as_uint(f[3]));
  }
};
template <> struct Pack<bf16, 0> {
  typedef uint4 V; static const int N = 8;
  static __device__ __forceinline__ void two(u32 w, float* f) { f[0] = __uint_as_float(w << 16); f[1] = __uint_as_float(w & 0xffff0000u); }
  static __device__ __forceinline__ u32 join(const float* f) {
    u32 w; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(f[1]), "f"(f[0])); return w;
  }
  static __device__ __forceinline__ void get(const V& v, float* f) { two(v.x, f); two(v.y, f + 2); two(v.z, f + 4); two(v.w, f + 6); }
  static __device__ __forceinline__ V put(const float* f) { return make_uint4(join(f), join(f + 2), join(f + 4), join(f + 6)); }
};
template <> struct Pack<f16, 0> {
  typedef uint4 V; static const int N = 8;
  static __device__ __forceinline__ void two(u32 w, float* f) { f[0] = up(f16(), (u16)(w & 0xffff)); f[1] = up(f16(), (u16)(w >> 16)); }
  static __device__ __forceinline__ u32 join(const float* f) {
    u32 w; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(f[1]), "f"(f[0])); return w;
  }
  static __device__ __forceinline__ void get(const V& v, float* f) { two(v.x, f); two(v.y, f + 2); two(v.z, f + 4); two(v.w, f + 6); }
  static __device__ __forceinline__ V put(const float* f) { return make_uint4(join(f), join(f + 2), join(f + 4), join(f + 6)); }
};
template <typename T> struct Pack<T, 1> : Pack<T, 0> {};
template <> struct Pack<float, 2> {
  typedef u32 V; static const int N = 1;
  static __device__ __forceinline__ void get(const V& v, float* f) { f[0] = __uint_as_float(v); }
  static __device__ __forceinline__ V put(const float* f) { return __float_as_uint(f[0]); }
};
template <typename T> struct Pack<T, 2> {
  typedef u16 V; static const int N = 1;
  static __device__ __forceinline__ void get(const V& v, float* f) { f[0] = up(T(), v); }
  static __device__ __forceinline__ V put(const float* f) { return down(T(), f[0]); }
};

__device__ __forceinline__ u32 sptr(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void store(uint4* p, uint4 v) {
#if STHINT
  asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" :: "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
#else
  *p = v;
#endif
}
__device__ __forceinline__ void store(u32* p, u32 v) { *p = v; }
__device__ __forceinline__ void store(u16* p, u16 v) { *p = v; }
__device__ __forceinline__ uint4 first(const uint4* p, u64 policy) {
#if LDHINT
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p), "l"(policy));
  return v;
#else
  return __ldg(p);
#endif
}
__device__ __forceinline__ float wsum(float v) {
#pragma unroll
  for (int i = 16; i; i >>= 1) v += __shfl_xor_sync(~0u, v, i);
  return v;
}
template <int N> __device__ __forceinline__ float tree(const float* f) {
  if constexpr (N == 1) return f[0];
  else return 0.5f * tree<N / 2>(f) + 0.5f * tree<N / 2>(f + N / 2);
}

template <typename T, int MODE, int NR, int MAXT, int MINB>
__global__ void __launch_bounds__(MAXT, MINB) gn(
    const T* x, const T* weight, const T* bias, T* y, float eps,
    u32 size,        // elements of a group
    u32 cg, u32 hw,  // channels of a group, elements of a channel
    u32 magic, u32 shift,
    u32 S,           // CTAs of a cluster
    u32 chunk,       // vectors of a CTA
    u32 nS,          // vectors kept in shared memory (at most)
    u32 piece,       // vectors of one bulk copy
    u64* ws,         // S words a group, all ones at first: CTAs of a group meet there; null: a cluster
    u32 table) {     // channels of the table in shared memory: cg or 0
  typedef Pack<T, MODE> P;
  typedef typename P::V V;
  constexpr int N = P::N;
  extern __shared__ __align__(128) unsigned char smem[];
  // [mbarriers 16 x 8][partials S x warps x 16][table cg x 8][data]
  const u32 tid = threadIdx.x, nt = blockDim.x, lane = tid & 31, warp = tid >> 5, nw = nt >> 5;
  u64* bars = (u64*)smem;
  float4* parts = (float4*)(smem + 128);
  float2* wb = (float2*)(smem + 128 + 16 * (ws ? 2u : max(S, 2u)) * nw);
  uint4* data = (uint4*)(smem + 128 + 16 * (ws ? 2u : max(S, 2u)) * nw + ((table * 8 + 15) & ~15u));

  const u32 group = blockIdx.x / S, rank = blockIdx.x - group * S;
  const u32 total = size / N;
  const u32 begin = min(rank * chunk, total), count = min(chunk, total - begin);
  const u32 endR = min(count, (u32)NR * nt), endS = min(count, endR + nS);
  const u32 nsm = endS - endR;
  const u32 g32 = group & 31;

  if (tid == 0 && nsm) {
    u32 i = 0;
    for (u32 at = 0; at < nsm; at += piece, i++)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(sptr(bars + i)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();
  if (!ws) {
    if (S > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
  }  // else the kernel before is fill(), which started after all earlier work: x may be read at once
  // no load may move above the wait: the pointers are opaque until here
  asm volatile("" : "+l"(x), "+l"(weight), "+l"(bias), "+l"(y) :: "memory");

  const V* xs = (const V*)(x + (u64)group * size) + begin;
  V* ys = (V*)(y + (u64)group * size) + begin;
  u64 policy = 0;
#if LDHINT
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
  if (tid == 0 && nsm) {
    u32 i = 0;
    for (u32 at = 0; at < nsm; at += piece, i++) {
      u32 bytes = min(piece, nsm - at) * 16, bar = sptr(bars + i);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
#if LDHINT
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                   :: "r"(sptr(data + at)), "l"(xs + endR + at), "r"(bytes), "r"(bar), "l"(policy) : "memory");
#else
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                   :: "r"(sptr(data + at)), "l"(xs + endR + at), "r"(bytes), "r"(bar) : "memory");
#endif
    }
  }
  V r[NR ? NR : 1];
  if constexpr (NR > 0) {
#pragma unroll
    for (int j = 0; j < NR; j++) {
      u32 v = j * nt + tid;
      if (v < endR) r[j] = first(xs + v, policy);
    }
  }
  for (u32 c = tid; c < table; c += nt) {
    float w[1], b[1];
    typedef Pack<T, 2> Q;
    Q::get(__ldg((const typename Q::V*)weight + g32 * cg + c), w);
    Q::get(__ldg((const typename Q::V*)bias + g32 * cg + c), b);
    wb[c] = make_float2(w[0], b[0]);
  }
  if (nsm) __syncthreads();  // barriers are initialised

  float K = 0.f, s1a = 0.f, s1b = 0.f, s2a = 0.f, s2b = 0.f;
  u32 mine = 0;
  auto add = [&](const V& v) {
    float f[N];
    P::get(v, f);
#pragma unroll
    for (int e = 0; e < N; e++) {
      float d = f[e] - K;
      if (e & 1) { s1b += d; s2b = fmaf(d, d, s2b); } else { s1a += d; s2a = fmaf(d, d, s2a); }
    }
    mine++;
  };
  auto shift_by = [&](const V& v) { float f[N]; P::get(v, f); K = tree<N>(f); };

  if constexpr (NR > 0) {
    if (tid < endR) shift_by(r[0]);
#pragma unroll
    for (int j = 0; j < NR; j++) if (j * nt + tid < endR) add(r[j]);
  }
  if (endS < count) {
    if (NR == 0) shift_by(__ldg(xs + min(endS + tid, count - 1)));
#pragma unroll 4
    for (u32 v = endS + tid; v < count; v += nt) add(__ldg(xs + v));
  }
  if constexpr (MODE < 2) {
    u32 i = 0;
    for (u32 at = 0; at < nsm; at += piece, i++) {
      u32 bar = sptr(bars + i);
      asm volatile("{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@p bra DONE;\nbra WAIT;\nDONE:\n}"
                   :: "r"(bar) : "memory");
      if (NR == 0 && at == 0 && endS == count) shift_by(data[min(tid, min(piece, nsm) - 1)]);
      const u32 stop = min(at + piece, nsm);
#pragma unroll 4
      for (u32 v = at + tid; v < stop; v += nt) add(data[v]);
    }
  }
  // statistics of the warp
  {
    float n = (float)(mine * N), s1 = s1a + s1b, s2 = s2a + s2b;
    float inv = mine ? 1.f / n : 0.f, rel = s1 * inv;
    float mean = mine ? K + rel : 0.f, m2 = s2 - s1 * rel;
    m2 = m2 < 0.f ? 0.f : m2;
    float nwarp = wsum(n), invw = nwarp > 0.f ? 1.f / nwarp : 0.f;
    float mw = wsum(mean * (n * invw));
    float d = mean - mw;
    m2 = wsum(fmaf(n * d, d, m2));
    if (S > 1 && !ws) {
      asm volatile("barrier.cluster.wait.aligned;" ::: "memory");  // all CTAs of the cluster have started
      if (lane < S) {
        u32 there;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(sptr(parts + rank * nw + warp)), "r"(lane));
        asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" :: "r"(there), "f"(nwarp), "f"(mw), "f"(m2), "f"(0.f) : "memory");
      }
      asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    } else {
      if (lane == 0) parts[warp] = make_float4(nwarp, mw, m2, 0.f);
      __syncthreads();
    }
  }
  float mean, rstd;
  if (ws) {
    asm volatile("griddepcontrol.wait;" ::: "memory");  // fill() is complete
    if (warp == 0) {
      float4 p = lane < nw ? parts[lane] : make_float4(0.f, 0.f, 0.f, 0.f);
      float n = wsum(p.x), inv = n > 0.f ? 1.f / n : 0.f;
      float m = wsum(p.y * (p.x * inv)), d = p.y - m;
      float q = wsum(fmaf(p.x * d, d, p.z));
      u64* words = ws + (u64)group * S;
      if (lane == 0) {
        u32 lo = m == m ? __float_as_uint(m) : 0x7fc00000u, hi = q == q ? __float_as_uint(q) : 0x7fc00000u;
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(words + rank), "l"(((u64)hi << 32) | lo) : "memory");
      }
      const float scale = 1.f / (float)size;
      m = 0.f; q = 0.f;
      u64 word[4];
#pragma unroll
      for (int k = 0; k < 4; k++) {
        u32 i = k * 32 + lane;
        word[k] = 0;
        if (i < S) do {
          asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word[k]) : "l"(words + i) : "memory");
        } while (word[k] == ~0ull);
        float c = i < S ? (float)(min(chunk, total - min(i * chunk, total)) * N) : 0.f;
        m = fmaf(c * scale, __uint_as_float((u32)word[k]), m);
      }
      __syncwarp();
      m = wsum(m);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        u32 i = k * 32 + lane;
        float c = i < S ? (float)(min(chunk, total - min(i * chunk, total)) * N) : 0.f;
        float d = __uint_as_float((u32)word[k]) - m;
        if (i < S) q += fmaf(c * d, d, __uint_as_float((u32)(word[k] >> 32)));
      }
      q = wsum(q);
      __syncwarp();
      if (lane == 0) parts[nw] = make_float4(m, 1.f / sqrtf(q * scale + eps), 0.f, 0.f);
    }
    __syncthreads();
    mean = parts[nw].x;
    rstd = parts[nw].y;
  } else {
    const float scale = 1.f / (float)size;
    const u32 entries = S * nw;
    float m = 0.f, q = 0.f;
    for (u32 i = lane; i < entries; i += 32) { float4 p = parts[i]; m = fmaf(p.x * scale, p.y, m); }
    mean = wsum(m);
    for (u32 i = lane; i < entries; i += 32) { float4 p = parts[i]; float d = p.y - mean; q += fmaf(p.x * d, d, p.z); }
    float var = wsum(q) * scale;
    rstd = 1.f / sqrtf(var + eps);
  }

  auto channel = [&](u32 c) -> float2 {
    if (table) return wb[c];
    float w[1], b[1];
    typedef Pack<T, 2> Q;
    Q::get(__ldg((const typename Q::V*)weight + g32 * cg + c), w);
    Q::get(__ldg((const typename Q::V*)bias + g32 * cg + c), b);
    return make_float2(w[0], b[0]);
  };
  auto finish = [&](const V& v, u32 at) {
    float f[N];
    P::get(v, f);
    u32 e0 = (begin + at) * N;
    u32 c = (u32)(((u64)e0 * magic) >> shift);
    float2 p = channel(c);
    float a = p.x * rstd;
    if constexpr (MODE == 1) {
      u32 left = (c + 1) * hw - e0;  // elements of this channel
#pragma unroll
      for (int e = 0; e < N; e++) {
        if (left == 0) { c++; left = hw; p = channel(c); a = p.x * rstd; }
        left--;
        f[e] = fmaf(f[e] - mean, a, p.y);
      }
    } else {
#pragma unroll
      for (int e = 0; e < N; e++) f[e] = fmaf(f[e] - mean, a, p.y);
    }
    store(ys + at, P::put(f));
  };
  if constexpr (NR > 0) {
#pragma unroll
    for (int j = 0; j < NR; j++) if (j * nt + tid < endR) finish(r[j], j * nt + tid);
  }
#pragma unroll 4
  for (u32 v = endS + tid; v < count; v += nt) finish(__ldg(xs + v), v);
  if constexpr (MODE < 2) {
#pragma unroll 4
    for (u32 v = tid; v < nsm; v += nt) finish(data[v], endR + v);
  }
}

extern "C" __global__ void fill(u64* ws, u32 n) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) ws[i] = ~0ull;
}
"""
TYPES = {torch.bfloat16: ("bf16", 2), torch.float16: ("f16", 2), torch.float32: ("float", 4)}
LIMIT = 227 * 1024


def check(result):
    if result[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"CUDA driver: {result[0]}")
    return result[1] if len(result) == 2 else result[1:]


@functools.cache
def compiled(device, name, load_hint, store_hint):
    options = ProgramOptions(
        arch="sm_90a", std="c++17", define_macro=[("LDHINT", str(load_hint)), ("STHINT", str(store_hint))]
    )
    code = Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,))
    kernel, fill = code.get_kernel(name), code.get_kernel("fill")
    function, other = (check(driver.cuKernelGetFunction(driver.CUkernel(int(each.handle)))) for each in (kernel, fill))
    attribute = driver.CUfunction_attribute
    check(driver.cuFuncSetAttribute(function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, LIMIT))
    check(driver.cuFuncSetAttribute(function, attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
    return function, other, (code, kernel, fill)


def ceil(a, b):
    return -(-a // b)


def choose(images, cg, hw, item, mode):
    """Cluster size, threads, vectors in registers, most bytes of data in shared memory, and so on."""
    groups = images * 32
    size = cg * hw
    if mode == 2:
        threads = min(512, max(32, ceil(ceil(size, 4), 32) * 32))
        S = 1
        while S < 8 and groups * S < 264 and size // S > 4096:
            S *= 2
        return dict(S=S, T=threads, NR=0, hold=0)
    bytes_ = size * item
    S = 1
    while S < 16 and (bytes_ / S > 112 * 1024 or (groups * S < 132 and bytes_ / S > 16 * 1024)):
        S *= 2
    vectors = ceil(bytes_ // 16, S)
    T = min(512, max(32, ceil(ceil(vectors, 5), 32) * 32))
    return dict(S=S, T=T, NR=0, hold=110 * 1024)


PDL, LD, ST = 1, 0, 0


@functools.lru_cache(4096)
def prepare(device, images, channels, hw, dtype, aligned, override):
    type_, item = TYPES[dtype]
    cg = channels // 32
    size = cg * hw
    N = 16 // item
    mode = 2
    if aligned and size % N == 0:
        mode = 0 if hw % N == 0 else 1
    config = dict(MINB=1, PDL=PDL, LD=LD, ST=ST, MAXT=0, WS=0)
    config.update(choose(images, cg, hw, item, mode))
    config.update(dict(override))
    S, T, NR = config["S"], config["T"], config["NR"]
    total = size if mode == 2 else size // N
    chunk = ceil(total, S)
    table = cg if cg <= 1024 else 0
    meet = config["WS"] and S > 1
    fixed = 128 + 16 * (2 if meet else max(S, 2)) * (T // 32) + (table * 8 + 15) // 16 * 16
    rest = max(chunk - NR * T, 0)
    nS = min(rest, config["hold"] // 16, (LIMIT - fixed) // 16)
    piece = max(ceil(ceil(max(nS, 1), 8), T) * T, 1)
    shift = (hw - 1).bit_length()
    magic = ceil(1 << (31 + shift), hw)
    maxt = config["MAXT"] or (256 if T <= 256 else 512 if T <= 512 else 1024)
    function, fill, _ = compiled(device, f"gn<{type_}, {mode}, {NR}, {maxt}, {config['MINB']}>", config["LD"], config["ST"])
    launch = driver.CUlaunchConfig()
    launch.gridDimX, launch.gridDimY, launch.gridDimZ = images * 32 * S, 1, 1
    launch.blockDimX, launch.blockDimY, launch.blockDimZ = T, 1, 1
    launch.sharedMemBytes = fixed + nS * 16
    attributes = []
    if S > 1 and not meet:
        each = driver.CUlaunchAttribute()
        each.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        each.value.clusterDim.x, each.value.clusterDim.y, each.value.clusterDim.z = S, 1, 1
        attributes.append(each)
    if config["PDL"] or meet:
        each = driver.CUlaunchAttribute()
        each.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        each.value.programmaticStreamSerializationAllowed = 1
        attributes.append(each)
    launch.numAttrs = len(attributes)
    launch.attrs = attributes
    before = None
    if meet:
        before = driver.CUlaunchConfig()
        words = images * 32 * S
        before.gridDimX, before.gridDimY, before.gridDimZ = ceil(words, 256), 1, 1
        before.blockDimX, before.blockDimY, before.blockDimZ = 256, 1, 1
    return function, launch, (size, cg, hw, magic, 31 + shift, S, chunk, nS, piece), table, fill, before


KINDS = (ctypes.c_void_p,) * 4 + (ctypes.c_float,) + (ctypes.c_uint32,) * 9 + (ctypes.c_void_p, ctypes.c_uint32)


def execute(x, weight, bias, eps, override=()):
    x = x.contiguous()
    weight, bias = weight.contiguous(), bias.contiguous()
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return y
    images, channels = x.shape[:2]
    hw = x.numel() // (images * channels)
    pointer, out = x.data_ptr(), y.data_ptr()
    device = x.device.index
    with torch.cuda.device(device):
        function, launch, tail, table, fill, before = prepare(
            device, images, channels, hw, x.dtype, (pointer | out) % 16 == 0, override
        )
        stream = torch.cuda.current_stream(x.device).cuda_stream
        launch.hStream = driver.CUstream(stream)
        words = 0
        if before is not None:
            count = images * 32 * tail[5]
            space = torch.empty(count, dtype=torch.int64, device=x.device)
            words = space.data_ptr()
            before.hStream = launch.hStream
            check(driver.cuLaunchKernelEx(before, fill, ((words, count), (ctypes.c_void_p, ctypes.c_uint32)), 0))
        values = (pointer, weight.data_ptr(), bias.data_ptr(), out, float(eps)) + tail + (words, table)
        check(driver.cuLaunchKernelEx(launch, function, (values, KINDS), 0))
    return y


def run(x, weight, bias, eps):
    return execute(x, weight, bias, eps)
