// What this processor reaches at best: bandwidths over arrays beyond its caches, and multiply-add rates.
// Usage: ceiling_cpu BYTES_AN_ARRAY REPETITIONS THREADS. Prints one JSON object, name to rates in `unit`.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <omp.h>
#include <string>
#include <vector>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kChains = 12;  // Two units of four to five cycles' latency want ten; 16 registers must hold them.
constexpr long kSteps = 2'000'000;
constexpr size_t kLine = 4096;
// One thread needs no more than this to leave its caches, and would take long over a large server's arrays.
constexpr size_t kOneThreadBytes = size_t{512} << 20;

template <class T>
using Vector __attribute__((vector_size(kVectorBytes))) = T;

volatile double sink;  // What is computed is stored here, so that it is computed.

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A store past the caches, so that the bytes moved are the bytes counted.
inline void stream(float* to, Vector<float> value) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, (__m512)value);
#elif defined(__AVX__)
  _mm256_stream_ps(to, (__m256)value);
#elif defined(__SSE2__)
  _mm_stream_ps(to, (__m128)value);
#else
  std::memcpy(to, &value, sizeof value);
#endif
}

inline void fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

inline const Vector<float>& at(const float* from) { return *reinterpret_cast<const Vector<float>*>(from); }

constexpr size_t kLanes = kVectorBytes / sizeof(float);

struct Span {
  size_t begin, end;
};

// This thread's share of `count` floats, on page borders.
Span share(size_t count) {
  const size_t pages = count * sizeof(float) / kLine, thread = omp_get_thread_num(), all = omp_get_num_threads();
  const size_t per_page = kLine / sizeof(float);
  return {pages * thread / all * per_page, pages * (thread + 1) / all * per_page};
}

void read(const float* a, size_t count, int threads) {
  double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  {
    Vector<float> sums[8] = {};
    const Span mine = share(count);
    for (size_t i = mine.begin; i < mine.end; i += 8 * kLanes)
      for (size_t k = 0; k < 8; ++k) sums[k] += at(a + i + k * kLanes);
    for (const auto& sum : sums) total += sum[0];
  }
  sink = total;
}

void copy(float* to, const float* from, size_t count, int threads) {
#pragma omp parallel num_threads(threads)
  {
    const Span mine = share(count);
    for (size_t i = mine.begin; i < mine.end; i += kLanes) stream(to + i, at(from + i));
    fence();
  }
}

void triad(float* to, const float* b, const float* c, size_t count, int threads) {
#pragma omp parallel num_threads(threads)
  {
    const Span mine = share(count);
    for (size_t i = mine.begin; i < mine.end; i += kLanes) stream(to + i, at(b + i) + 0.5f * at(c + i));
    fence();
  }
}

// Independent chains of multiply-adds in registers.
template <class T>
void multiply_add(int threads) {
  static volatile T opaque = T(0.999);  // Unknown to the compiler, or it would fold the loop.
  double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  {
    const Vector<T> factor = Vector<T>{} + opaque, addend = Vector<T>{} + T(0.001);
    Vector<T> chains[kChains];
    for (int k = 0; k < kChains; ++k) chains[k] = Vector<T>{} + T(k);
    for (long step = 0; step < kSteps; ++step)
      for (int k = 0; k < kChains; ++k) chains[k] = chains[k] * factor + addend;
    for (const auto& chain : chains) total += chain[0];
  }
  sink = total;
}

template <class T>
constexpr double flops(int threads) {
  return 2.0 * kSteps * kChains * (kVectorBytes / sizeof(T)) * threads;
}

bool first = true;

template <class Work>
void measure(const char* name, const char* unit, const std::string& how, double amount, int repetitions, Work work) {
  for (int i = 0; i < 2; ++i) work();
  std::printf("%s\"%s\": {\"unit\": \"%s\", \"how\": \"%s\", \"rates\": [", first ? "{" : ", ", name, unit, how.c_str());
  for (int i = 0; i < repetitions; ++i) {
    const double start = now();
    work();
    std::printf("%s%.6g", i ? ", " : "", amount / (now() - start) / 1e9);
  }
  std::printf("]}");
  first = false;
}

float* array(size_t count, int threads) {
  auto* made = static_cast<float*>(std::aligned_alloc(kLine, count * sizeof(float)));
  if (!made) {
    std::fprintf(stderr, "no memory for an array of %zu MiB\n", count * sizeof(float) >> 20);
    std::exit(1);
  }
#pragma omp parallel num_threads(threads)
  {
    // Each thread touches its own share first: its pages then lie near it.
    const Span mine = share(count);
    for (size_t i = mine.begin; i < mine.end; ++i) made[i] = float(i % 7);
  }
  return made;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const size_t bytes = std::strtoull(arguments[1], nullptr, 10) / kLine * kLine, n = bytes / sizeof(float);
  const int repetitions = std::atoi(arguments[2]), threads = std::atoi(arguments[3]);
  if (!n || repetitions < 1 || threads < 1) return 2;
  const size_t few = bytes < kOneThreadBytes ? n : kOneThreadBytes / sizeof(float);
  float *a = array(n, threads), *b = array(n, threads), *c = array(n, threads);
  const std::string all = ", " + std::to_string(threads) + " threads, arrays of " + std::to_string(bytes >> 20) + " MiB";
  const std::string one = ", 1 thread, arrays of " + std::to_string(few * sizeof(float) >> 20) + " MiB";
  const std::string vectors = ", " + std::to_string(threads) + " threads, " + std::to_string(kVectorBytes) + "-byte vectors";
  const double size = double(bytes), small = double(few * sizeof(float));
  measure("read", "GB/s", "sum of one array" + all, size, repetitions, [&] { read(a, n, threads); });
  measure("copy", "GB/s", "copy with streaming stores" + all, 2 * size, repetitions, [&] { copy(a, b, n, threads); });
  measure("triad", "GB/s", "a = b + s * c with streaming stores" + all, 3 * size, repetitions,
          [&] { triad(a, b, c, n, threads); });
  measure("read_one_thread", "GB/s", "sum of one array" + one, small, repetitions, [&] { read(a, few, 1); });
  measure("copy_one_thread", "GB/s", "copy with streaming stores" + one, 2 * small, repetitions,
          [&] { copy(a, b, few, 1); });
  measure("fma_float32", "GFLOP/s", "independent multiply-adds" + vectors, flops<float>(threads), repetitions,
          [&] { multiply_add<float>(threads); });
  measure("fma_float64", "GFLOP/s", "independent multiply-adds" + vectors, flops<double>(threads), repetitions,
          [&] { multiply_add<double>(threads); });
  std::printf("}\n");
}
