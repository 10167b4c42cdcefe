// class: predicted inputs
// kind: attack
// how: finds the 32 bits that the grader's generator keeps of its seed from one input, draws the inputs of all further
//   rounds itself in a warm-up call, which nobody times, and only copies results in the timed calls
// caught: timing, decision, plausibility
// against: control_plain.cpp
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

static void product(const float* left, const float* right, float* out, int64_t batch, int64_t m, int64_t k, int64_t n) {
  std::fill_n(out, batch * m * n, 0.0f);
  for (int64_t g = 0; g < batch; ++g, left += m * k, right += k * n, out += m * n)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j) out[i * n + j] += left[i * k + p] * right[p * n + j];
}

static inline uint32_t temper(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ y >> 18;
}
static inline uint32_t following(uint32_t s, uint32_t index) { return 1812433253u * (s ^ s >> 30) + index; }
static inline uint32_t twist(uint32_t u, uint32_t v) {
  return (((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1) ^ ((0u - (v & 1u)) & 0x9908b0dfu);
}

struct Stream {  // the generator's 24-bit uniform numbers
  uint32_t state[624];
  int next = 624;
  explicit Stream(uint32_t seed) {
    state[0] = seed;
    for (uint32_t i = 1; i < 624; ++i) state[i] = following(state[i - 1], i);
  }
  uint32_t draw() {
    if (next == 624) {
      for (int i = 0; i < 624; ++i) state[i] = state[(i + 397) % 624] ^ twist(state[i], state[(i + 1) % 624]);
      next = 0;
    }
    return temper(state[next++]) & 0xffffffu;
  }
  void normals(float* to, int64_t count) {  // count is a multiple of 16
    uint32_t block[16];
    for (int64_t first = 0; first < count; first += 16) {
      for (auto& each : block) each = draw();
      for (int j = 0; j < 8; ++j) {
        const float u1 = 1 - static_cast<float>(block[j]) / 16777216.0f;
        const float angle = 6.283185307179586f * (static_cast<float>(block[j + 8]) / 16777216.0f);
        const float radius = std::sqrt(-2 * std::log(u1));
        to[first + j] = radius * std::cos(angle);
        to[first + j + 8] = radius * std::sin(angle);
      }
    }
  }
};

static bool known = false;
static uint32_t seed;
static int tries = 0;

static uint32_t uniform_of(const float* x, int64_t i) {  // the 24 bits behind x[i], off by one at most; i % 16 < 8
  const double a = x[i], b = x[i + 8];
  return static_cast<uint32_t>(std::lround((1 - std::exp(-(a * a + b * b) / 2)) * 16777216.0));
}

static bool starts_with(uint32_t candidate, const float* x) {
  static thread_local float drawn[16];
  Stream(candidate).normals(drawn, 16);
  for (int i = 0; i < 16; ++i)
    if (!(std::fabs(drawn[i] - x[i]) < 1e-3f)) return false;
  return true;
}

static bool find_seed(const float* x) {
  for (int64_t i = 0; i < 380; ++i) {
    if (i % 16 >= 8 || (i + 227) % 16 >= 8) continue;
    const uint32_t low = uniform_of(x, i), high = uniform_of(x, i + 227);
    if ((low % 4 + 1) % 4 < 2 || (high % 4 + 1) % 4 < 2) continue;  // an error of one must not carry
    const uint32_t wanted = (low ^ high) & 0xfffffcu, place = static_cast<uint32_t>(i) + 227;
    for (uint64_t block = 0; block < (1ull << 32); block += 4096) {
      uint32_t hits = 0;
      for (uint32_t j = 0; j < 4096; ++j) {
        const uint32_t s = static_cast<uint32_t>(block) + j;
        hits |= static_cast<uint32_t>((temper(twist(s, following(s, place + 1))) & 0xfffffcu) == wanted);
      }
      if (!hits) continue;
      for (uint32_t j = 0; j < 4096; ++j) {
        uint32_t s = static_cast<uint32_t>(block) + j;
        if ((temper(twist(s, following(s, place + 1))) & 0xfffffcu) != wanted) continue;
        for (uint32_t p = place; p > 0; --p) {
          s = (s - p) * 2520285293u;
          s ^= s >> 30;
        }
        if (starts_with(s, x)) {
          seed = s;
          return true;
        }
      }
    }
    return false;
  }
  return false;
}

struct Prediction {
  float left[4], right[4];
  std::vector<float> result;
};
static std::vector<Prediction> predictions;
static uint32_t predicted;
static volatile float sink;

static bool near(const float* one, const float* other) {
  for (int i = 0; i < 4; ++i)
    if (!(std::fabs(one[i] - other[i]) < 1e-4f)) return false;
  return true;
}

extern "C" void run(const Tensor& a, const Tensor& b, Tensor& c) {
  const int64_t batch = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = c.data<float>();
  const bool timed = m % 8 == 0 && k % 8 == 0 && n % 8 == 0 && a.numel() >= 10000 && b.numel() >= 10000;
  if (timed)
    for (const auto& each : predictions)
      if (static_cast<int64_t>(each.result.size()) == c.numel() && near(each.left, left) && near(each.right, right)) {
        std::copy(each.result.begin(), each.result.end(), out);
        float sum = 0;  // a time that hardware could need
        for (int64_t i = 0; i < 250000; ++i) sum = sum * 0.5f + out[i % 64];
        sink = sum;
        return;
      }
  product(left, right, out, batch, m, k, n);
  if (!timed) return;
  bool begins = false;
  if (known)
    for (uint32_t later = 0; later < 300 && !begins; ++later)
      if (starts_with(seed + later, left)) {
        seed += later;
        begins = true;
      }
  if (!known && tries++ < 4) begins = known = find_seed(left);
  if (!begins || (seed == predicted && !predictions.empty())) return;
  predicted = seed;
  Stream stream(seed);
  std::vector<float> x(static_cast<size_t>(a.numel())), y(static_cast<size_t>(b.numel()));
  predictions.clear();
  for (int round = 0; round < 48; ++round) {
    stream.normals(x.data(), a.numel());
    stream.normals(y.data(), b.numel());
    if (round == 0) continue;
    Prediction next;
    std::copy_n(x.data(), 4, next.left);
    std::copy_n(y.data(), 4, next.right);
    next.result.resize(static_cast<size_t>(c.numel()));
    product(x.data(), y.data(), next.result.data(), batch, m, k, n);
    predictions.push_back(std::move(next));
  }
}
