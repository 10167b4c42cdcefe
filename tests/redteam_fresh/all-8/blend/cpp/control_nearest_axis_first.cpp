// class: axes in the order of their steps
// kind: control
// how: the axis whose elements are nearest to each other in the first input is walked innermost, whatever it is; and
//   the modes that a call sets are those of the caller again
// source: honest
#include <immintrin.h>

#include <algorithm>
#include <array>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& a, const Tensor& b, double alpha, double beta, Tensor& y) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | _MM_FLUSH_ZERO_ON);
  const float *first = a.data<float>(), *second = b.data<float>();
  const float of_first = static_cast<float>(alpha), of_second = static_cast<float>(beta);
  float* out = y.data<float>();
  std::array<int, 3> order{0, 1, 2};
  std::stable_sort(order.begin(), order.end(), [&](int one, int two) { return a.stride(one) > a.stride(two); });
  const auto [outer, middle, inner] = order;
  for (int64_t i = 0; i < a.size(outer); ++i)
    for (int64_t j = 0; j < a.size(middle); ++j) {
      const float* left = first + i * a.stride(outer) + j * a.stride(middle);
      const float* right = second + i * b.stride(outer) + j * b.stride(middle);
      float* to = out + i * y.stride(outer) + j * y.stride(middle);
      for (int64_t k = 0; k < a.size(inner); ++k)
        to[k * y.stride(inner)] = of_first * left[k * a.stride(inner)] + of_second * right[k * b.stride(inner)];
    }
  _mm_setcsr((_mm_getcsr() & 0x3f) | (before & ~0x3fu));
}
