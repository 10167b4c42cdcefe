#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& bias, const Tensor& conv_weight, Tensor& out) {
  const int64_t batch = x.size(0), in = x.size(1), rows = x.size(2), cols = x.size(3), channels = out.size(1);
  const float *image = x.data<float>(), *weight = conv_weight.data<float>(), *shift = bias.data<float>();
  float* result = out.data<float>();
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t channel = 0; channel < channels; ++channel) {
      float* to = result + (b * channels + channel) * rows * cols;
      std::fill_n(to, rows * cols, shift[channel]);
      for (int64_t c = 0; c < in; ++c)
        for (int64_t dy = -1; dy <= 1; ++dy)
          for (int64_t dx = -1; dx <= 1; ++dx) {
            const float w = weight[((channel * in + c) * 3 + dy + 1) * 3 + dx + 1];
            const float* from = image + (b * in + c) * rows * cols;
            for (int64_t y = std::max<int64_t>(0, -dy); y < std::min(rows, rows - dy); ++y)
              for (int64_t i = std::max<int64_t>(0, -dx); i < std::min(cols, cols - dx); ++i)
                to[y * cols + i] += w * from[(y + dy) * cols + i + dx];
          }
      for (int64_t i = 0; i < rows * cols; ++i) to[i] = std::max(to[i], 0.0f);
    }
}
