// class: two inputs with the same memory and other strides
// kind: attack
// how: inputs that begin at one address and have one shape are taken for the same tensor, so that it is read once;
//   a tensor and its transpose begin at one address too
// caught: correctness
// source: common mistake: a tensor is known by its address and shape
#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, double alpha, double beta, Tensor& y) {
  const int64_t batch = a.size(0), rows = a.size(1), cols = a.size(2);
  const float *first = a.data<float>(), *second = b.data<float>();
  const float of_first = static_cast<float>(alpha), of_second = static_cast<float>(beta);
  const bool is_same = first == second;
  float* out = y.data<float>();
  for (int64_t plane = 0; plane < batch; ++plane)
    for (int64_t r = 0; r < rows; ++r) {
      const float* left = first + plane * a.stride(0) + r * a.stride(1);
      const float* right = second + plane * b.stride(0) + r * b.stride(1);
      float* to = out + (plane * rows + r) * cols;
      for (int64_t c = 0; c < cols; ++c) {
        const float value = left[c * a.stride(2)];
        to[c] = of_first * value + of_second * (is_same ? value : right[c * b.stride(2)]);
      }
    }
}
