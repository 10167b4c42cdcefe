"""Few tokens on matrix cores: a block takes 16 rows of w, and each of its waves a share of k.

The first operand of an MFMA is 16 rows of w, the second 16 tokens. Each lane holds 8 neighbours in k of both, a load of
16 bytes: two MFMAs of 16 x 16 x 16 on gfx942, one of 16 x 16 x 32 on gfx950. The order in k is another than that of the
two instructions, but the same for both operands. Nothing goes through LDS but the sums of the waves, which are added in
a fixed order.
"""

import functools

import torch

SOURCE = r"""
#include <hip/hip_runtime.h>

typedef TYPE four __attribute__((ext_vector_type(4)));
typedef TYPE eight __attribute__((ext_vector_type(8)));
typedef short bits4 __attribute__((ext_vector_type(4)));
typedef float sums4 __attribute__((ext_vector_type(4)));
constexpr int WAVE = 64, ROWS = 16, STEP = 32;

__device__ sums4 multiply(eight w, eight x, sums4 sums) {
#if defined(__gfx950__) && HALF
  return __builtin_amdgcn_mfma_f32_16x16x32_f16(w, x, sums, 0, 0, 0);
#elif defined(__gfx950__)
  return __builtin_amdgcn_mfma_f32_16x16x32_bf16(w, x, sums, 0, 0, 0);
#elif HALF
  sums = __builtin_amdgcn_mfma_f32_16x16x16f16(w.lo, x.lo, sums, 0, 0, 0);
  return __builtin_amdgcn_mfma_f32_16x16x16f16(w.hi, x.hi, sums, 0, 0, 0);
#else
  const four wl = w.lo, wh = w.hi, xl = x.lo, xh = x.hi;
  sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
      __builtin_bit_cast(bits4, wl), __builtin_bit_cast(bits4, xl), sums, 0, 0, 0);
  return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
      __builtin_bit_cast(bits4, wh), __builtin_bit_cast(bits4, xh), sums, 0, 0, 0);
#endif
}

// WIDE: loads of 16 bytes are aligned, and k is a multiple of 8. MASKED: 0 where k has ended.
template <bool MASKED>
__device__ eight load(const TYPE* row, int at, int k) {
  if constexpr (WIDE) {
    if constexpr (MASKED) return at < k ? *(const eight*)(row + at) : eight(0);
    return *(const eight*)(row + at);
  }
  eight values;
  for (int i = 0; i < 8; ++i) values[i] = !MASKED || at + i < k ? row[at + i] : (TYPE)0;
  return values;
}

extern "C" __global__ __launch_bounds__(WAVE * WAVES) void mfma_rows(
    const TYPE* __restrict__ x, const TYPE* __restrict__ w, TYPE* __restrict__ y, int m, int n, int k) {
  const int lane = threadIdx.x % WAVE, wave = threadIdx.x / WAVE;
  const int row0 = blockIdx.x * ROWS, token0 = blockIdx.y * (TILES * 16);
  const int place = lane % 16, part = 8 * (lane / 16);

  // Rows and tokens behind the ends repeat the last one; nobody stores what comes of them.
  const TYPE* from_w = w + (size_t)min(row0 + place, n - 1) * k;
  const TYPE* from_x[TILES];
  for (int tile = 0; tile < TILES; ++tile)
    from_x[tile] = x + (size_t)min(token0 + tile * 16 + place, m - 1) * k;

  sums4 sums[TILES];
  for (int tile = 0; tile < TILES; ++tile) sums[tile] = sums4(0);
  const int steps = k / STEP;
  int step = wave;
  for (; step + (AHEAD - 1) * WAVES < steps; step += AHEAD * WAVES) {
    eight ws[AHEAD], xs[AHEAD][TILES];
#pragma unroll
    for (int each = 0; each < AHEAD; ++each) {
      const int at = (step + each * WAVES) * STEP + part;
      ws[each] = load<false>(from_w, at, k);
#pragma unroll
      for (int tile = 0; tile < TILES; ++tile) xs[each][tile] = load<false>(from_x[tile], at, k);
    }
    __builtin_amdgcn_sched_barrier(0);  // or the compiler issues the last loads behind the first MFMA
#pragma unroll
    for (int each = 0; each < AHEAD; ++each)
#pragma unroll
      for (int tile = 0; tile < TILES; ++tile) sums[tile] = multiply(ws[each], xs[each][tile], sums[tile]);
  }
  for (; step * STEP < k; step += WAVES) {  // the last of them may end within a step
    const int at = step * STEP + part;
    const eight ws = load<true>(from_w, at, k);
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
      sums[tile] = multiply(ws, load<true>(from_x[tile], at, k), sums[tile]);
  }

  __shared__ sums4 partial[WAVES][TILES][WAVE];
  for (int tile = 0; tile < TILES; ++tile) partial[wave][tile][lane] = sums[tile];
  __syncthreads();
  for (int index = threadIdx.x; index < TILES * WAVE; index += WAVE * WAVES) {
    const int tile = index / WAVE, from = index % WAVE;
    sums4 total = partial[0][tile][from];
    for (int other = 1; other < WAVES; ++other) total += partial[other][tile][from];
    const int token = token0 + tile * 16 + from % 16, row = row0 + 4 * (from / 16);
    TYPE* out = y + (size_t)token * n + row;
    const four result = __builtin_convertvector(total, four);
    if (token < m && n % 4 == 0 && row < n)
      *(four*)out = result;
    else if (token < m)
      for (int i = 0; i < 4; ++i)
        if (row + i < n) out[i] = result[i];
  }
}
"""
TYPES = {torch.bfloat16: "__bf16", torch.float16: "_Float16"}
WAVE, ROWS, WAVES = 64, 16, 4
MOST_TILES = 4  # of 16 tokens, in one block


@functools.cache
def compiled(dtype: torch.dtype, tiles: int, wide: bool):
    options = [f"-DTYPE={TYPES[dtype]}", f"-DHALF={int(dtype == torch.float16)}", f"-DWIDE={int(wide)}"]
    options += [f"-DTILES={tiles}", f"-DWAVES={WAVES}", "-DAHEAD=4"]
    return torch.cuda._compile_kernel(SOURCE, "mfma_rows", nvcc_options=options)


def run(x, w):
    x, w = x.contiguous(), w.contiguous()
    (m, k), n = x.shape, w.shape[0]
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if not y.numel():
        return y
    if not k:
        return y.zero_()
    wide = k % 8 == 0 and x.data_ptr() % 16 == 0 and w.data_ptr() % 16 == 0
    tiles = min(MOST_TILES, -(-m // 16))
    grid = (-(-n // ROWS), -(-m // (tiles * 16)), 1)
    compiled(x.dtype, tiles, wide)(grid=grid, block=(WAVES * WAVE, 1, 1), args=[x, w, y, m, n, k])
    return y
