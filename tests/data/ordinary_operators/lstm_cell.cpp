#include <cmath>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& input, const Tensor& hx_0, const Tensor& hx_1, const Tensor& weight_ih,
                    const Tensor& weight_hh, const Tensor& bias_ih, const Tensor& bias_hh, Tensor& out0,
                    Tensor& out1) {
  const int64_t rows = input.size(0), depth = input.size(1), width = hx_0.size(1);
  const float *x = input.data<float>(), *hidden = hx_0.data<float>(), *cell = hx_1.data<float>();
  const float *from_input = weight_ih.data<float>(), *from_hidden = weight_hh.data<float>();
  const float *first_bias = bias_ih.data<float>(), *second_bias = bias_hh.data<float>();
  float *next_hidden = out0.data<float>(), *next_cell = out1.data<float>();
  const auto sigmoid = [](float value) { return 1 / (1 + std::exp(-value)); };
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t unit = 0; unit < width; ++unit) {
      float gate[4];
      for (int64_t g = 0; g < 4; ++g) {
        const int64_t at = g * width + unit;
        float sum = first_bias[at] + second_bias[at];
        for (int64_t i = 0; i < depth; ++i) sum += from_input[at * depth + i] * x[row * depth + i];
        for (int64_t i = 0; i < width; ++i) sum += from_hidden[at * width + i] * hidden[row * width + i];
        gate[g] = sum;
      }
      const int64_t at = row * width + unit;
      const float state = sigmoid(gate[1]) * cell[at] + sigmoid(gate[0]) * std::tanh(gate[2]);
      next_cell[at] = state;
      next_hidden[at] = sigmoid(gate[3]) * std::tanh(state);
    }
}
