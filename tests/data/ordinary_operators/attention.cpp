#include <algorithm>
#include <cmath>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, Tensor& out) {
  const int64_t heads = q.size(0) * q.size(1), rows = q.size(2), depth = q.size(3), keys = k.size(2), width = v.size(3);
  const float *queries = q.data<float>(), *first_key = k.data<float>(), *values = v.data<float>();
  const float* additive = mask.data<float>();
  float* result = out.data<float>();
  const float scale = 1 / std::sqrt(static_cast<float>(depth));
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t row = 0; row < rows; ++row) {
      const float* query = queries + (head * rows + row) * depth;
      std::vector<float> score(keys);
      float top = -INFINITY, total = 0;
      for (int64_t key = 0; key < keys; ++key) {
        const float* other = first_key + (head * keys + key) * depth;
        float sum = 0;
        for (int64_t i = 0; i < depth; ++i) sum += query[i] * other[i];
        score[key] = sum * scale + additive[row * keys + key];
        top = std::max(top, score[key]);
      }
      float* to = result + (head * rows + row) * width;
      std::fill_n(to, width, 0.0f);
      if (top == -INFINITY) continue;  // every key is masked: PyTorch's result is zero
      for (float& value : score) total += value = std::exp(value - top);
      for (int64_t key = 0; key < keys; ++key) {
        const float* from = values + (head * keys + key) * width;
        const float weight = score[key] / total;
        for (int64_t i = 0; i < width; ++i) to[i] += weight * from[i];
      }
    }
}
