#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& norm_weight, const Tensor& norm_bias, Tensor& out) {
  constexpr int64_t groups = 4;
  const int64_t batch = x.size(0), channels = x.size(1), pixels = x.size(2) * x.size(3), each = channels / groups;
  const float *first = x.data<float>(), *weight = norm_weight.data<float>(), *bias = norm_bias.data<float>();
  float* result = out.data<float>();
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t start = (b * channels + group * each) * pixels, count = each * pixels;
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < count; ++i) sum += first[start + i];
      const double mean = sum / count;
      for (int64_t i = 0; i < count; ++i) squares += (first[start + i] - mean) * (first[start + i] - mean);
      const double inverse = 1 / std::sqrt(squares / count + 1e-5);
      for (int64_t c = 0; c < each; ++c)
        for (int64_t i = 0; i < pixels; ++i) {
          const int64_t at = start + c * pixels + i;
          const double normal = (first[at] - mean) * inverse;
          result[at] = static_cast<float>(normal * weight[group * each + c] + bias[group * each + c]);
        }
    }
}
