"""Group normalisation, NCHW, 32 groups: one launch, a group held on chip by one block or by a cluster of blocks.

A group is contiguous. Each block reads its slice once into registers (NR vectors a thread) and shared memory (NS vectors a
thread), sums around a pivot of the thread's own, merges means and squared deviations (Chan) over warp, block and cluster, and
writes the output from the copy on chip. Vectors beyond NR + NS are read again, mostly from L2.
"""

import functools

import numpy
import torch
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch

GROUPS = 32

SOURCE = r"""
// TYPE: 0 bfloat16, 1 float16, 2 float32. VEC: elements a vector. PIXEL: a vector may cross channels. NT: threads.
// NR, NS: vectors a thread in registers and in shared memory. FULL: every thread has exactly NR + NS vectors.
// CL: the group belongs to a cluster. TAB: the channels' weights are staged in shared memory. W: 32-bit words a vector.
typedef unsigned int u32;
#define ESIZE (TYPE == 2 ? 4 : 2)
#define BYTES (VEC * ESIZE)
#define W (BYTES >= 4 ? BYTES / 4 : 1)
#define NW (NT / 32)
#define ALL 0xffffffffu
#define ONCE 0x12f0000000000000ll  // L2 policy: evict first
#define KEEP 0x14f0000000000000ll  // evict last
#define DIFF (TYPE == 2)
#define UN 4

struct Vec { u32 w[W]; };

__device__ __forceinline__ Vec load(const char* p) {
  Vec v;
#if BYTES == 16
  asm volatile(LD ".v4.u32 {%0,%1,%2,%3}, [%4]" LDP ";" : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
               : "l"(p), "l"(ONCE));
#elif BYTES == 8
  asm volatile(LD ".v2.u32 {%0,%1}, [%2];" : "=r"(v.w[0]), "=r"(v.w[1]) : "l"(p));
#elif BYTES == 4
  asm volatile(LD ".u32 %0, [%1];" : "=r"(v.w[0]) : "l"(p));
#else
  unsigned short h;
  asm volatile(LD ".u16 %0, [%1];" : "=h"(h) : "l"(p));
  v.w[0] = h;
#endif
  return v;
}
__device__ __forceinline__ Vec again(const char* p) {
  Vec v;
#if BYTES == 16
  asm volatile(LD2 ".v4.u32 {%0,%1,%2,%3}, [%4]" LD2P ";" : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
               : "l"(p), "l"(KEEP));
#elif BYTES == 8
  asm volatile(LD2 ".v2.u32 {%0,%1}, [%2];" : "=r"(v.w[0]), "=r"(v.w[1]) : "l"(p));
#elif BYTES == 4
  asm volatile(LD2 ".u32 %0, [%1];" : "=r"(v.w[0]) : "l"(p));
#else
  unsigned short h;
  asm volatile(LD2 ".u16 %0, [%1];" : "=h"(h) : "l"(p));
  v.w[0] = h;
#endif
  return v;
}
__device__ __forceinline__ void store(char* p, const Vec& v) {
#if BYTES == 16
  asm volatile(ST ".v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3]));
#elif BYTES == 8
  asm volatile(ST ".v2.u32 [%0], {%1,%2};" ::"l"(p), "r"(v.w[0]), "r"(v.w[1]));
#elif BYTES == 4
  asm volatile(ST ".u32 [%0], %1;" ::"l"(p), "r"(v.w[0]));
#else
  asm volatile(ST ".u16 [%0], %1;" ::"l"(p), "h"((unsigned short)v.w[0]));
#endif
}
__device__ __forceinline__ float half_up(unsigned short h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
__device__ __forceinline__ float get(const Vec& v, int j) {
#if TYPE == 2
  return __uint_as_float(v.w[j]);
#elif TYPE == 1
  return half_up((unsigned short)(j & 1 ? v.w[j / 2] >> 16 : v.w[j / 2] & 0xffffu));
#else
  return __uint_as_float(j & 1 ? v.w[j / 2] & 0xffff0000u : v.w[j / 2] << 16);
#endif
}
__device__ __forceinline__ u32 pack(float lo, float hi) {
  u32 r;
#if TYPE == 1
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
#else
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
#endif
  return r;
}
__device__ __forceinline__ float parameter(const void* p, int i) {
#if TYPE == 2
  return ((const float*)p)[i];
#elif TYPE == 1
  return half_up(((const unsigned short*)p)[i]);
#else
  return __uint_as_float((u32)((const unsigned short*)p)[i] << 16);
#endif
}
__device__ __forceinline__ u32 divide(u32 n, u32 magic, u32 shift) { return (__umulhi(n, magic) + n) >> shift; }

__device__ __forceinline__ float total(float x) {
#pragma unroll
  for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(ALL, x, o);
  return x;
}
// All lanes get the merged count, mean and sum of squared deviations.
__device__ __forceinline__ void merge(float& n, float& mean, float& m2) {
  float count = total(n), sum = total(n * mean);
  float centre = count > 0.f ? sum / count : 0.f;
  float d = mean - centre;
  m2 = total(n > 0.f ? m2 + n * d * d : 0.f);
  n = count;
  mean = centre;
}

extern __shared__ __align__(16) char dynamic[];

#if NS
__device__ __forceinline__ Vec staged(u32 i) {
  uint4 t = *(const uint4*)(dynamic + i * 16);
  Vec v;
  v.w[0] = t.x; v.w[1 % W] = t.y; v.w[2 % W] = t.z; v.w[3 % W] = t.w;
  return v;
}
#endif

extern "C" __global__ void __launch_bounds__(NT, MINB)
kernel(const char* __restrict__ x, const void* __restrict__ weight, const void* __restrict__ bias, char* __restrict__ y,
       float eps, u32 length, u32 chunk, u32 divisor, u32 magic, u32 shift, u32 cpg, u32 table, u32 groups) {
  __shared__ float4 parts[2][32];
  __shared__ float4 slots[2][16];
  __shared__ __align__(8) unsigned long long barriers[2];
  const u32 tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
#if CL
  u32 rank, ranks;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
  u32 group = blockIdx.x / ranks;
  const u32 step = gridDim.x / ranks;
  const u32 bars = (u32)__cvta_generic_to_shared(barriers);
  if (tid == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bars) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bars + 8) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bars), "r"(16 * ranks) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bars + 8), "r"(16 * ranks) : "memory");
  }
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  const u32 start = min(rank * chunk, length);
#else
  u32 group = blockIdx.x;
  const u32 start = 0, step = gridDim.x;
#endif
  const u32 count = min(chunk, length - start);
  const char* in = x + ((long long)group * length + start) * BYTES + (long long)tid * BYTES;
  char* out = y + ((long long)group * length + start) * BYTES + (long long)tid * BYTES;
  const long long jump = (long long)step * length * BYTES;
  const u32 mine = smem_base() + tid * 16;
#define HAS(i) (FULL || (i) * NT + tid < count)
#define FETCH(i) asm volatile(COPY ::"r"(mine + (i) * NT * 16), \
                              "l"(in + (long long)(NR + (i)) * (NT * BYTES)), "l"(ONCE) : "memory")

  Vec r[NR];
#pragma unroll
  for (int i = 0; i < NR; ++i) {
    if (HAS(i)) r[i] = load(in + (long long)i * (NT * BYTES));
    else {
#pragma unroll
      for (int k = 0; k < W; ++k) r[i].w[k] = 0;
    }
  }
#if NS
#pragma unroll
  for (int i = 0; i < NS; ++i)
    if (HAS(NR + i)) FETCH(i);
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  const u32 first = PIXEL ? divide(start * VEC, magic, shift) : divide(start, magic, shift);

  u32 turn = 0;
#if LOOP
  for (;; ++turn) {
#endif
  const u32 odd = turn & 1;
  const u32 channel = group % 32 * cpg;
#if TAB
  float2* affine = (float2*)(dynamic + NS * NT * 16) + odd * table;
  for (u32 c = tid; c < table; c += NT) {
    u32 k = min(first + c, cpg - 1);
    affine[c] = make_float2(parameter(weight, channel + k), parameter(bias, channel + k));
  }
#endif

  float pivot = HAS(0) ? get(r[0], 0) : 0.f;
  float s0 = 0.f, s1 = 0.f, q0 = 0.f, q1 = 0.f;
  auto add = [&](const Vec& v) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      float d = get(v, j) - pivot;
      if (j & 1) { s1 += d; q1 = fmaf(d, d, q1); }
      else { s0 += d; q0 = fmaf(d, d, q0); }
    }
  };
#pragma unroll
  for (int i = 0; i < NR; ++i)
    if (HAS(i)) add(r[i]);
#if !FULL
  {
    u32 v = (NR + NS) * NT + tid;
    for (; v + (UN - 1) * NT < count; v += UN * NT) {
      Vec t[UN];
#pragma unroll
      for (int u = 0; u < UN; ++u) t[u] = again(in + (long long)(v - tid + u * NT) * BYTES);
#pragma unroll
      for (int u = 0; u < UN; ++u) add(t[u]);
    }
    for (; v < count; v += NT) add(again(in + (long long)(v - tid) * BYTES));
  }
#endif
#if NS
  asm volatile("cp.async.wait_group 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < NS; ++i)
    if (HAS(NR + i)) add(staged(i * NT + tid));
#endif
  float n = FULL ? (float)((NR + NS) * VEC) : (tid < count ? (float)((count - tid + NT - 1) / NT) * VEC : 0.f);
  float s = s0 + s1, mean = pivot, m2 = 0.f;
  if (n > 0.f) {
    float d = s / n;
    mean = pivot + d;
    m2 = (q0 + q1) - s * d;
    m2 = m2 < 0.f ? 0.f : m2;
  }
  merge(n, mean, m2);
  if (NW > 1 || CL) {
    if (lane == 0) parts[odd][warp] = make_float4(n, mean, m2, 0.f);
  }
  __syncthreads();
#if CL
  if (turn == 0) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  const u32 bar = bars + 8 * odd;
  if (warp == 0) {
#endif
    if (NW > 1) {
      float4 p = lane < NW ? parts[odd][lane] : make_float4(0.f, 0.f, 0.f, 0.f);
      n = p.x; mean = p.y; m2 = p.z;
      merge(n, mean, m2);
    }
#if CL
    if (lane < ranks) {
      u32 there, told, slot = (u32)__cvta_generic_to_shared(&slots[odd][rank]);
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(slot), "r"(lane));
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(told) : "r"(bar), "r"(lane));
      asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1,%2,%3,%4}, [%5];" ::"r"(there),
                   "r"(__float_as_uint(n)), "r"(__float_as_uint(mean)), "r"(__float_as_uint(m2)), "r"(0), "r"(told)
                   : "memory");
    }
  }
  u32 done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(bar), "r"((turn >> 1) & 1) : "memory");
#if LOOP
  if (tid == 0)  // for the turn after the next
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(16 * ranks) : "memory");
#endif
  {
    float4 p = lane < ranks ? slots[odd][lane] : make_float4(0.f, 0.f, 0.f, 0.f);
    n = p.x; mean = p.y; m2 = p.z;
    merge(n, mean, m2);
  }
#endif
  const float rstd = 1.f / sqrtf(m2 / n + eps);

  auto coefficients = [&](u32 c, float& a, float& b) {
#if TAB
    float2 t = affine[c - first];
#else
    float2 t = make_float2(parameter(weight, channel + c), parameter(bias, channel + c));
#endif
    a = t.x * rstd;
    b = DIFF ? t.y : fmaf(-mean, a, t.y);
  };
  auto one = [&](float v, float a, float b) { return DIFF ? fmaf(v - mean, a, b) : fmaf(v, a, b); };
  auto apply = [&](const Vec& v, u32 i) {  // i: the vector's number in the block's slice, less the thread's
    float o[VEC], a, b;
    const u32 at = start + i + tid;
#if PIXEL
    u32 c = divide(at * VEC, magic, shift), k = at * VEC - c * divisor;
    coefficients(c, a, b);
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      if (j && ++k == divisor) { k = 0; coefficients(++c, a, b); }
      o[j] = one(get(v, j), a, b);
    }
#else
    coefficients(divide(at, magic, shift), a, b);
#pragma unroll
    for (int j = 0; j < VEC; ++j) o[j] = one(get(v, j), a, b);
#endif
    Vec z;
#if TYPE == 2
#pragma unroll
    for (int j = 0; j < VEC; ++j) z.w[j] = __float_as_uint(o[j]);
#elif VEC == 1
    z.w[0] = pack(o[0], 0.f);
#else
#pragma unroll
    for (int j = 0; j < VEC / 2; ++j) z.w[j] = pack(o[2 * j], o[2 * j + 1]);
#endif
    store(out + (long long)i * BYTES, z);
  };
#if !FULL
  {
    u32 v = (NR + NS) * NT + tid;
    for (; v + (UN - 1) * NT < count; v += UN * NT) {
      Vec t[UN];
#pragma unroll
      for (int u = 0; u < UN; ++u) t[u] = again(in + (long long)(v - tid + u * NT) * BYTES);
#pragma unroll
      for (int u = 0; u < UN; ++u) apply(t[u], v - tid + u * NT);
    }
    for (; v < count; v += NT) apply(again(in + (long long)(v - tid) * BYTES), v - tid);
  }
#endif
#if LOOP
  const bool more = group + step < groups;
  in += jump;
#else
  const bool more = false;
#endif
#pragma unroll
  for (int i = 0; i < NR; ++i)
    if (HAS(i)) {
      apply(r[i], i * NT);
      if (more) r[i] = load(in + (long long)i * (NT * BYTES));
    }
#if NS
#pragma unroll
  for (int i = 0; i < NS; ++i)
    if (HAS(NR + i)) {
      apply(staged(i * NT + tid), (NR + i) * NT);
      if (more) FETCH(i);
    }
#endif
#if LOOP
  if (!more) break;
#if NS
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  out += jump;
  group += step;
  }
#endif
}
""".replace("smem_base()", "(u32)__cvta_generic_to_shared(dynamic)")

TYPES = {torch.bfloat16: (0, 2), torch.float16: (1, 2), torch.float32: (2, 4)}
LOAD = "ld.global.cs"
AGAIN = "ld.global"
STORE = "st.global.cs"
PLAIN = "ld.global", "ld.global", "st.global"


def text(type, vec, pixel, threads, nr, ns, minb, full, cl, tab, loop, ld, ld2, st):
    names = dict(TYPE=type, VEC=vec, PIXEL=pixel, NT=threads, NR=nr, NS=ns, MINB=minb, FULL=full, CL=cl, TAB=tab, LOOP=loop)
    head = "".join(f"#define {k} {int(v)}\n" for k, v in names.items())
    hint = "cache_hint" in ld
    copy = "cp.async.cg.shared.global" + (".L2::cache_hint [%0], [%1], 16, %2;" if hint else " [%0], [%1], 16;")
    strings = dict(LD=ld, LD2=ld2, ST=st, COPY=copy, LDP=", %5" if hint else "", LD2P=", %5" if "cache_hint" in ld2 else "")
    return head + "".join(f'#define {k} "{v}"\n' for k, v in strings.items()) + SOURCE


def build(*key):
    return Program(text(*key), "c++", ProgramOptions(arch="sm_90a", std="c++17")).compile("cubin")


@functools.cache
def compiled(*key):
    kernel = build(*key).get_kernel("kernel")
    attribute = driver.CUfunction_attribute
    for name, value in (
        (attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 225 * 1024),
        (attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
    ):
        driver.cuKernelSetAttribute(name, value, kernel.handle, 0)
    return kernel


def resident(kernel, cluster, threads, shared):
    """How many clusters the device runs at once; 0 if unknown."""
    function = driver.cuKernelGetFunction(kernel.handle)[1]
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = 128 * cluster, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared
    if cluster == 1:
        blocks = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared)[1]
        return blocks * torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = cluster, 1, 1
    config.attrs, config.numAttrs = [attribute], 1
    error, clusters = driver.cuOccupancyMaxActiveClusters(function, config)
    return int(clusters) if int(error) == 0 else 0


def up(a, b):
    return -(-a // b)


def plan(length, groups, size):
    """Blocks of a cluster, threads, vectors a thread in registers and in shared memory, blocks wanted on a multiprocessor, loop."""
    cluster = 1
    while cluster < 16 and (up(length, cluster) > 5120 or (groups * cluster < 256 and up(length, cluster) > 1024)):
        cluster *= 2
    chunk = up(length, cluster)
    if size < 16:
        threads = min(512, max(64, up(chunk, 8 * 32) * 32))
        return cluster, threads, min(8, up(chunk, threads)), 0, 1, 0
    if chunk <= 320:
        threads = min(64, up(chunk, 32) * 32)
        return cluster, threads, up(chunk, threads), 0, 8, 0
    best = None
    for each in (16, 10, 8, 12, 14, 9, 11, 13, 15):
        threads = max(64, up(chunk, each * 32) * 32)
        waste = (threads * up(chunk, threads) - chunk) / chunk + (0 if threads & (threads - 1) == 0 else 0.02)
        if threads <= 512 and (best is None or waste < best[0] - 0.01):
            best = waste, threads, up(chunk, threads)
    threads, each = best[1:] if best else (512, 16)
    nr = (each + 2) // 4
    return cluster, threads, nr, each - nr, max(1, 1024 // threads), 0


def prepare(shape, dtype, alignment, override=None):
    """The kernel's key, the launch's shape and the integers."""
    images, channels, pixels = shape
    code, size = TYPES[dtype]
    cpg = channels // GROUPS
    groups = images * GROUPS
    elements = cpg * pixels
    vec = 16 // size
    while elements % vec or alignment % (vec * size):
        vec //= 2
    length = elements // vec
    pixel = int(pixels % vec != 0)
    cluster, threads, nr, ns, minb, loop, *hints = override or plan(length, groups, vec * size)
    if vec * size != 16:
        ns, hints = 0, PLAIN
    chunk = up(length, cluster)
    full = int(length == cluster * threads * (nr + ns))
    table = min(cpg, (chunk * vec) // pixels + 2)
    tab = int(table <= 512)
    divisor = pixels if pixel else pixels // vec
    shift = (divisor - 1).bit_length()
    magic = ((1 << 32) * ((1 << shift) - divisor)) // divisor + 1
    shared = ns * threads * 16 + (table * 8 * (1 + loop) if tab else 0)
    key = (code, vec, pixel, threads, nr, ns, minb, full, int(cluster > 1), tab, loop, *(hints or (LOAD, AGAIN, STORE)))
    return key, (groups, cluster, threads, shared), (length, chunk, divisor, magic, shift, cpg, table, groups)


@functools.cache
def ready(shape, dtype, alignment, override):
    key, (groups, cluster, threads, shared), numbers = prepare(shape, dtype, alignment, override)
    kernel = compiled(*key)
    active = resident(kernel, cluster, threads, shared) if key[10] or cluster > 8 else groups
    if cluster > 8 and not active:  # no part of the device has room for so many blocks side by side
        settings = override or plan(numbers[0], groups, key[1] * TYPES[dtype][1])
        return ready(shape, dtype, alignment, (8, *settings[1:]))
    grid = up(groups, up(groups, active)) if key[10] and active else groups  # a loop: every cluster has as many turns
    extra = {"cluster": (cluster,)} if cluster > 1 else {}
    config = LaunchConfig(grid=(grid,), block=(threads,), shmem_size=shared, **extra)
    return kernel, config, tuple(numpy.uint32(n) for n in numbers)


def run(x, weight, bias, eps, override=None):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    y = torch.empty_like(x)
    if x.numel() == 0:
        return y
    alignment = min(x.data_ptr() & -x.data_ptr(), 16)
    shape = (x.shape[0], x.shape[1], x.numel() // (x.shape[0] * x.shape[1]))
    kernel, config, numbers = ready(shape, x.dtype, alignment, override)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    launch(stream, config, kernel, x.data_ptr(), weight.data_ptr(), bias.data_ptr(), y.data_ptr(), numpy.float32(eps), *numbers)
    return y
