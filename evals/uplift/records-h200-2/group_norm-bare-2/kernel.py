"""Group norm (32 groups) in one pass over memory: a block, a cluster or a set of blocks keeps its group on chip.

The source is specialised to the shape by NVRTC. Each block of a group holds its part in shared memory (bulk copies)
and registers; what does not fit is read a second time. Statistics are merged from thread means (Chan), in float32.
"""

import ctypes
import functools

import torch
from cuda.bindings import driver
from cuda.core import Program, ProgramOptions

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;

static constexpr int NW = THREADS / 32;
static constexpr int VE = VB / ES;                       // elements of a vector
static constexpr u32 GV = (u32)(GROUP / VE);             // vectors of a group
static constexpr u32 CV = (GV + RANKS - 1) / RANKS;      // vectors of a block
static constexpr bool EVEN = GV % RANKS == 0;
static constexpr bool SOFT = SOFTSYNC && RANKS > 1;
static constexpr int CLUSTER = SOFT ? 1 : RANKS;
static constexpr int ENT = NW * CLUSTER;
static constexpr int AFF = CG <= 1024 ? CG : 1;
static constexpr u32 STV = NST > 0 ? ((SMEMV + NST - 1) / NST + THREADS - 1) / THREADS * THREADS : 1;
static constexpr int NB = NST > 0 ? NST : 1;
static constexpr int W = VB >= 4 ? VB / 4 : 1;

struct alignas(VB >= 4 ? VB : 4) Vec { u32 w[W]; };

__device__ __forceinline__ float up(u32 word, int j) {   // j: which half
#if TYPE == 0
  return __uint_as_float(j ? (word & 0xffff0000u) : (word << 16));
#elif TYPE == 1
  float f; u16 h = j ? (u16)(word >> 16) : (u16)word;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
#else
  return __uint_as_float(word);
#endif
}
__device__ __forceinline__ u32 down(float lo, float hi) {
  u32 r;
#if TYPE == 0
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
#else
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
#endif
  return r;
}
__device__ __forceinline__ float get(const Vec& v, int j) {
#if TYPE == 2
  return __uint_as_float(v.w[j]);
#else
  return up(v.w[j >> 1], j & 1);
#endif
}
__device__ __forceinline__ Vec load(const char* p) {
  Vec v;
  if constexpr (VB == 16)
    asm volatile("ld.global" LDHINT ".v4.b32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1 % W]), "=r"(v.w[2 % W]), "=r"(v.w[3 % W]) : "l"(p));
  else if constexpr (VB == 8)
    asm volatile("ld.global.v2.b32 {%0,%1}, [%2];" : "=r"(v.w[0]), "=r"(v.w[1 % W]) : "l"(p));
  else if constexpr (VB == 4)
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(v.w[0]) : "l"(p));
  else {
    u16 h;
    asm volatile("ld.global.b16 %0, [%1];" : "=h"(h) : "l"(p));
    v.w[0] = h;
  }
  return v;
}
__device__ __forceinline__ void store(char* p, const Vec& v) {
  if constexpr (VB == 16)
    asm volatile("st.global" STHINT ".v4.b32 [%4], {%0,%1,%2,%3};"
                 :: "r"(v.w[0]), "r"(v.w[1 % W]), "r"(v.w[2 % W]), "r"(v.w[3 % W]), "l"(p) : "memory");
  else if constexpr (VB == 8)
    asm volatile("st.global.v2.b32 [%2], {%0,%1};" :: "r"(v.w[0]), "r"(v.w[1 % W]), "l"(p) : "memory");
  else if constexpr (VB == 4)
    asm volatile("st.global.b32 [%1], %0;" :: "r"(v.w[0]), "l"(p) : "memory");
  else
    asm volatile("st.global.b16 [%1], %0;" :: "h"((u16)v.w[0]), "l"(p) : "memory");
}
__device__ __forceinline__ float scalar(const char* p, int i) {
#if TYPE == 2
  return ((const float*)p)[i];
#else
  return up(((const u16*)p)[i], 0);
#endif
}
__device__ __forceinline__ float total(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
__device__ __forceinline__ u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void await(u32 bar) {
  asm volatile("{\n.reg .pred p;\nW%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@p bra D%=;\nbra W%=;\nD%=:\n}"
               :: "r"(bar) : "memory");
}

struct Stats {
  float k, s0, s1, q0, q1;
  u32 n;
  __device__ __forceinline__ void add(const Vec& v) {
    if (n == 0) k = get(v, 0);
    n += VE;
#pragma unroll
    for (int j = 0; j < VE; ++j) {
      float d = get(v, j) - k;
      if (j & 1) { s1 += d; q1 = fmaf(d, d, q1); } else { s0 += d; q0 = fmaf(d, d, q0); }
    }
  }
};

extern "C" __global__ void __launch_bounds__(256) gn_fill(u64* p, u32 n) {
#if PDL
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  u32 i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) p[i] = ~0ull;
}

extern "C" __global__ void __launch_bounds__(THREADS, MINB)
gn_norm(const char* __restrict__ x, const char* __restrict__ weight, const char* __restrict__ bias, char* __restrict__ y,
     float eps, u64* ws) {
  extern __shared__ __align__(128) char buf[];
  __shared__ __align__(8) u64 bars[NB];
  __shared__ float red[3][ENT];
  __shared__ float2 aff[AFF];
  const u32 tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
  const u32 rank = RANKS == 1 ? 0 : blockIdx.x % RANKS, group = blockIdx.x / RANKS;
  const u32 first = min(rank * CV, GV);
  const u32 cv = EVEN ? CV : min(CV, GV - first);
  const u32 sv = min(cv, (u32)SMEMV);
  const int c0 = (int)(group % 32) * CG;
  const size_t base = (size_t)group * ((size_t)GROUP * ES) + (size_t)first * VB;
  const char* xp = x + base;
  char* yp = y + base;

  if (NST > 0) {
    if (tid == 0) {
#pragma unroll
      for (int s = 0; s < NST; ++s)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared(&bars[s])) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
  }
#if PDL
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  if (NST > 0 && tid == 0) {
#pragma unroll 1
    for (u32 s = 0; s * STV < sv; ++s) {
      u32 bytes = min(STV, sv - s * STV) * VB;
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared(&bars[s])), "r"(bytes) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                   :: "r"(shared(buf) + s * STV * VB), "l"(xp + (size_t)s * STV * VB), "r"(bytes), "r"(shared(&bars[s])) : "memory");
    }
  }
  Vec held[RV > 0 ? RV : 1];
#pragma unroll
  for (int i = 0; i < RV; ++i) {
    u32 v = sv + i * THREADS + tid;
    if (v < cv) held[i] = load(xp + (size_t)v * VB);
  }
  if (CLUSTER > 1) asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
  if (CG <= AFF)
    for (int c = tid; c < CG; c += THREADS) aff[c] = make_float2(scalar(weight, c0 + c), scalar(bias, c0 + c));
  if (NST > 0) __syncthreads();

  Stats t = {0.f, 0.f, 0.f, 0.f, 0.f, 0};
  if (NST > 0) {
#pragma unroll 1
    for (u32 s = 0; s * STV < sv; ++s) {
      await(shared(&bars[s]));
      u32 end = min((s + 1) * STV, sv);
#pragma unroll 2
      for (u32 v = s * STV + tid; v < end; v += THREADS) t.add(*(const Vec*)(buf + v * VB));
    }
  }
#pragma unroll
  for (int i = 0; i < RV; ++i)
    if (sv + i * THREADS + tid < cv) t.add(held[i]);
  const u32 rest = sv + RV * THREADS;
  if (SMEMV + RV * THREADS < CV) {
    u32 v = rest + tid;
    for (; v + 3 * THREADS < cv; v += 4 * THREADS) {
      Vec a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = load(xp + (size_t)(v + i * THREADS) * VB);
#pragma unroll
      for (int i = 0; i < 4; ++i) t.add(a[i]);
    }
    for (; v < cv; v += THREADS) t.add(load(xp + (size_t)v * VB));
  }

  // thread -> warp
  float n = (float)t.n, s = t.s0 + t.s1, q = t.q0 + t.q1;
  float inv = t.n ? __frcp_rn(n) : 0.f;
  float mean = fmaf(s, inv, t.k);
  float m2 = fmaxf(fmaf(-s * inv, s, q), 0.f);
  if (!(q == q)) m2 = q;
  float wn = total(n), wmean = total(n * mean);
  wmean = wn > 0.f ? wmean / wn : 0.f;
  float d = mean - wmean;
  float wm2 = total(fmaf(n * d, d, m2));

  if (CLUSTER > 1) {
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");   // all blocks of the cluster have started
    if (lane < CLUSTER) {
      u32 slot = shared(&red[0][rank * NW + warp]), there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(slot), "r"(lane));
      asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(there), "f"(wn) : "memory");
      asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(there + ENT * 4), "f"(wmean) : "memory");
      asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(there + ENT * 8), "f"(wm2) : "memory");
    }
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
  } else {
    if (lane == 0) { red[0][warp] = wn; red[1][warp] = wmean; red[2][warp] = wm2; }
    __syncthreads();
  }
  // warps -> block or cluster, by every warp
  constexpr int PL = (ENT + 31) / 32;
  float en[PL], em[PL], sum = 0.f, cnt = 0.f, acc = 0.f;
#pragma unroll
  for (int i = 0; i < PL; ++i) {
    int e = i * 32 + lane;
    en[i] = e < ENT ? red[0][e] : 0.f;
    em[i] = e < ENT ? red[1][e] : 0.f;
    acc += e < ENT ? red[2][e] : 0.f;
    sum = fmaf(en[i], em[i], sum);
    cnt += en[i];
  }
  cnt = SOFT ? total(cnt) : (float)GROUP;
  mean = cnt > 0.f ? total(sum) / cnt : 0.f;
#pragma unroll
  for (int i = 0; i < PL; ++i) acc = fmaf(en[i] * (em[i] - mean), em[i] - mean, acc);
  m2 = total(acc);

  if (SOFT) {   // blocks -> group through memory: a pair of floats that is not all ones is there
    __shared__ float done[2];
    if (warp == 0) {
      u64* slots = ws + (size_t)group * RANKS;
      if (lane == 0) {
        u32 lo = __float_as_uint(mean), hi = __float_as_uint(m2);
        if (lo == 0xffffffffu) lo = 0x7fffffffu;
        asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" :: "l"(slots + rank), "l"((u64)hi << 32 | lo) : "memory");
      }
      constexpr int RL = (RANKS + 31) / 32;
      float rn[RL], rm[RL];
      sum = acc = 0.f;
#pragma unroll
      for (int i = 0; i < RL; ++i) {
        u32 e = i * 32 + lane;
        rn[i] = rm[i] = 0.f;
        if (e < RANKS) {
          u64 v;
          do asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(v) : "l"(slots + e) : "memory");
          while (v == ~0ull);
          u32 f = min(e * CV, GV);
          rn[i] = (float)(min(CV, GV - f) * VE);
          rm[i] = __uint_as_float((u32)v);
          acc += __uint_as_float((u32)(v >> 32));
          sum = fmaf(rn[i], rm[i], sum);
        }
      }
      __syncwarp();
      mean = total(sum) / (float)GROUP;
#pragma unroll
      for (int i = 0; i < RL; ++i) acc = fmaf(rn[i] * (rm[i] - mean), rm[i] - mean, acc);
      m2 = total(acc);
      if (lane == 0) { done[0] = mean; done[1] = m2; }
    }
    __syncthreads();
    mean = done[0];
    m2 = done[1];
  }
  const float rstd = 1.f / sqrtf(m2 / (float)GROUP + eps);

  auto affine = [&](u32 c, float& a, float& o) {
    float wv, bv;
    if (CG <= AFF) { float2 f = aff[c]; wv = f.x; bv = f.y; }
    else { wv = scalar(weight, c0 + c); bv = scalar(bias, c0 + c); }
    a = wv * rstd;
    o = fmaf(-mean, a, bv);
  };
  auto finish = [&](u32 v, const Vec& in) {
    float r[VE];
    if (HW % VE == 0) {
      float a, o;
      affine((first + v) / (u32)(HW / VE > 0 ? HW / VE : 1), a, o);
#pragma unroll
      for (int j = 0; j < VE; ++j) r[j] = fmaf(get(in, j), a, o);
    } else {
#pragma unroll
      for (int j = 0; j < VE; ++j) {
        float a, o;
        affine((u32)(((u64)(first + v) * VE + j) / (u64)HW), a, o);
        r[j] = fmaf(get(in, j), a, o);
      }
    }
    Vec out;
#if TYPE == 2
#pragma unroll
    for (int j = 0; j < VE; ++j) out.w[j] = __float_as_uint(r[j]);
#else
#pragma unroll
    for (int j = 0; j < W; ++j) out.w[j] = down(r[2 * j], VE > 1 ? r[(2 * j + 1) % VE] : 0.f);
#endif
    store(yp + (size_t)v * VB, out);
  };
  if (SMEMV + RV * THREADS < CV) {
    u32 v = rest + tid;
    for (; v + 3 * THREADS < cv; v += 4 * THREADS) {
      Vec a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = load(xp + (size_t)(v + i * THREADS) * VB);
#pragma unroll
      for (int i = 0; i < 4; ++i) finish(v + i * THREADS, a[i]);
    }
    for (; v < cv; v += THREADS) finish(v, load(xp + (size_t)v * VB));
  }
#pragma unroll
  for (int i = 0; i < RV; ++i)
    if (sv + i * THREADS + tid < cv) finish(sv + i * THREADS + tid, held[i]);
  if (NST > 0) {
#pragma unroll 4
    for (u32 v = tid; v < sv; v += THREADS) finish(v, *(const Vec*)(buf + v * VB));
  }
}
"""

KINDS = {torch.bfloat16: (0, 2), torch.float16: (1, 2), torch.float32: (2, 4)}


def check(result):
    if int(result[0]) != 0:
        raise RuntimeError(f"CUDA driver: {result[0]}")
    return result[1] if len(result) > 1 else None


def defines(channels, pixels, dtype, vector, cfg):
    kind, size = KINDS[dtype]
    per = channels // 32
    return dict(
        TYPE=kind, ES=size, VB=vector, HW=f"{pixels}ll", CG=per, GROUP=f"{per * pixels}ll",
        THREADS=cfg["threads"], RANKS=cfg["ranks"], SOFTSYNC=int(cfg["soft"]), SMEMV=cfg["smem"] // vector if cfg["smem"] else 0,
        NST=cfg["stages"] if cfg["smem"] else 0, RV=cfg["held"], MINB=cfg["minb"], PDL=int(cfg["pdl"]),
        LDHINT='""' if not cfg.get("ld") else f'"{cfg["ld"]}"', STHINT='""' if not cfg.get("st") else f'"{cfg["st"]}"',
    )


def cubin(channels, pixels, dtype, vector, cfg):
    macros = defines(channels, pixels, dtype, vector, cfg)
    text = "".join(f"#define {name} {each}\n" for name, each in macros.items()) + SOURCE
    code = Program(text, "c++", ProgramOptions(arch="sm_90a", std="c++17")).compile("cubin").code
    return bytes(code)


def build(channels, pixels, dtype, vector, cfg, code=None):
    code = code or cubin(channels, pixels, dtype, vector, cfg)
    module = check(driver.cuModuleLoadData(code))
    norm = check(driver.cuModuleGetFunction(module, b"gn_norm"))
    fill = check(driver.cuModuleGetFunction(module, b"gn_fill"))
    attribute = driver.CUfunction_attribute
    if cfg["smem"]:
        check(driver.cuFuncSetAttribute(norm, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, cfg["smem"]))
    if cfg["ranks"] > 8 and not cfg["soft"]:
        check(driver.cuFuncSetAttribute(norm, attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
    return norm, fill, module


def start(function, grid, block, smem, cluster, pdl, stream, values, types):
    attributes = []
    if cluster > 1:
        each = driver.CUlaunchAttribute()
        each.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        each.value.clusterDim.x, each.value.clusterDim.y, each.value.clusterDim.z = cluster, 1, 1
        attributes.append(each)
    if pdl:
        each = driver.CUlaunchAttribute()
        each.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        each.value.programmaticStreamSerializationAllowed = 1
        attributes.append(each)
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
    config.sharedMemBytes = smem
    config.hStream = driver.CUstream(stream)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    check(driver.cuLaunchKernelEx(config, function, (values, types), 0))


POINTER = ctypes.c_void_p


def invoke(built, cfg, x, weight, bias, eps, y):
    norm, fill, _ = built
    groups = x.shape[0] * 32
    stream = torch.cuda.current_stream(x.device).cuda_stream
    ws = 0
    if cfg["soft"] and cfg["ranks"] > 1:
        words = groups * cfg["ranks"]
        scratch = torch.empty(words, dtype=torch.int64, device=x.device)
        ws = scratch.data_ptr()
        start(fill, (words + 255) // 256, 256, 0, 1, cfg["pdl"], stream, (ws, words), (POINTER, ctypes.c_uint32))
    values = (x.data_ptr(), weight.data_ptr(), bias.data_ptr(), y.data_ptr(), float(eps), ws)
    types = (POINTER, POINTER, POINTER, POINTER, ctypes.c_float, POINTER)
    cluster = 1 if cfg["soft"] else cfg["ranks"]
    start(norm, groups * cfg["ranks"], cfg["threads"], cfg["smem"], cluster, cfg["pdl"], stream, values, types)


def make(ranks=1, threads=256, held=0, smem=0, stages=4, minb=1, soft=False, pdl=True, ld="", st=""):
    return dict(ranks=ranks, threads=threads, held=held, smem=smem, stages=stages, minb=minb, soft=soft, pdl=pdl, ld=ld, st=st)


def up_to(value, step):
    return -(-value // step) * step


def plan(groups, nbytes, vector):
    """How a group of `nbytes` is spread over blocks, registers and shared memory."""
    count = nbytes // vector
    if vector < 16:  # registers only: narrow accesses
        ranks = 1
        while groups * ranks < 132 and count // (2 * ranks) >= 2048 and ranks < 8:
            ranks *= 2
        while count > ranks * 12288 and ranks < 8:
            ranks *= 2
        part = -(-count // ranks)
        threads = 32
        while threads < 1024 and part > threads * 12:
            threads *= 2
        held = min(max(-(-part // threads), 1), 12)
        return make(ranks, threads, held)
    if nbytes <= 98304:
        ranks = 1
        while groups * ranks < 128 and nbytes // (2 * ranks) >= 16384:
            ranks *= 2
        return block(groups, count, ranks)
    if nbytes <= 300000:
        if groups >= 200 and nbytes <= 163840:
            return block(groups, count, 1)
        if groups >= 100:
            return block(groups, count, 2)
        ranks = 2 if nbytes <= 131072 else 4 if nbytes <= 262144 else 8
        while groups * ranks < 128 and ranks < 8:
            ranks *= 2
        return block(groups, count, ranks, soft=groups * ranks > 132)
    ranks = -(-nbytes // 131072)
    if nbytes <= 600000:
        if groups * ranks > 264:
            return block(groups, count, 4)
        ranks = max(ranks, min(264 // groups, -(-nbytes // 65536)))
        return block(groups, count, ranks, soft=True, most=7)
    if nbytes <= 1 << 20:
        return block(groups, count, -(-nbytes // 65536), soft=True)
    if ranks > 128:  # part of the group is read twice
        return make(128, 512, 6, 81920, 4, minb=2, soft=True)
    return block(groups, count, ranks, soft=True, stages=1 if ranks <= 32 else 4)


def block(groups, count, ranks, soft=False, most=6, stages=1):
    """Threads, registers and shared memory for a block with its share of `count` vectors of 16 bytes."""
    part, blocks = -(-count // ranks), groups * ranks
    size = part * 16

    def registers(threads):
        held = max(-(-part // threads), 1)
        need = up_to(4 * held + 20, 8)
        return make(ranks, threads, held, minb=max(min(65536 // (threads * need), 2048 // threads, 16), 1), soft=soft)

    if size <= 8192:
        return registers(max(up_to(-(-part // 2), 32), 32))
    if size <= 16384:
        return make(ranks, 192, 0, size, 1, minb=10, soft=soft) if blocks > 528 and size > 10240 else registers(256)
    if size <= 24576:
        return make(ranks, 256, 0, size, 1, minb=8, soft=soft) if blocks > 528 else registers(512)
    if blocks <= 132 and 49152 < size <= 98304:
        return registers(1024)
    if size <= 32768 and blocks > 132 or size <= 40960 and blocks > 264:
        return registers(256)
    if size <= 65536 and (blocks <= 264 or soft or size <= 40960):
        return registers(512)
    if size <= 65536:
        return make(ranks, 384, 0, size, 1, minb=3, soft=soft)
    if size <= 98304:
        return make(ranks, 512, 0, size, 1, minb=2, soft=soft)
    held = most if size <= 131072 else 8
    return make(ranks, 512, held, size - held * 8192, stages, minb=2, soft=soft)


@functools.cache
def prepared(channels, pixels, groups, dtype, vector, index):
    cfg = plan(groups, channels // 32 * pixels * KINDS[dtype][1], vector)
    return build(channels, pixels, dtype, vector, cfg), cfg


def run(x, weight, bias, eps):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    y = torch.empty_like(x)
    if x.numel() == 0:
        return y
    channels = x.shape[1]
    pixels = x.numel() // (x.shape[0] * channels)
    vector = 16
    while (channels // 32 * pixels * x.element_size()) % vector or x.data_ptr() % vector:
        vector //= 2
    with torch.cuda.device(x.device):
        built, cfg = prepared(channels, pixels, x.shape[0] * 32, x.dtype, vector, x.device.index)
        invoke(built, cfg, x, weight, bias, eps, y)
    return y
