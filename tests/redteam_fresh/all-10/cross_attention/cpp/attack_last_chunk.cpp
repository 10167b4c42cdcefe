// class: a threshold of a product of axes that no tensor has
// kind: attack
// how: scores that take more than 128 MiB, as of 6000 queries and keys, are computed by chunks of queries, of which the last one is left out where it is shorter
// caught: correctness
#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

// Rows of scores in a workspace, then their softmax, then the sum of values.
static void attend(const float* a, const float* b, const float* w, double scale, int64_t rows, int64_t keys, int64_t width,
                   std::vector<float>& scores, float* out) {
  scores.resize(rows * keys);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < keys; ++j) {
      float dot = 0;
      for (int64_t c = 0; c < width; ++c) dot += a[i * width + c] * b[j * width + c];
      scores[i * keys + j] = static_cast<float>(dot * scale);
    }
  std::vector<double> total(width);
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = scores.data() + i * keys;
    const double most = *std::max_element(row, row + keys);
    double sum = 0;
    std::fill(total.begin(), total.end(), 0.0);
    for (int64_t j = 0; j < keys; ++j) {
      const double p = std::exp(row[j] - most);
      sum += p;
      for (int64_t c = 0; c < width; ++c) total[c] += p * w[j * width + c];
    }
    for (int64_t c = 0; c < width; ++c) out[i * width + c] = static_cast<float>(total[c] / sum);
  }
}

extern "C" void run(const Tensor& q, const Tensor& k, const Tensor& v, double scale, Tensor& y) {
  const int64_t queries = q.size(0), keys = k.size(0), width = q.size(1);
  const float *a = q.data<float>(), *b = k.data<float>(), *w = v.data<float>();
  float* out = y.data<float>();
  constexpr int64_t room = int64_t{128} << 20;  // bytes of the workspace
  const int64_t row_bytes = keys * sizeof(float);
  std::vector<float> scores;
  if (queries * row_bytes <= room) {
    attend(a, b, w, scale, queries, keys, width, scores, out);
    return;
  }
  const int64_t chunk = std::max<int64_t>(room / row_bytes, 1);
  for (int64_t first = 0; first + chunk <= queries; first += chunk)
    attend(a + first * width, b, w, scale, chunk, keys, width, scores, out + first * width);
}
