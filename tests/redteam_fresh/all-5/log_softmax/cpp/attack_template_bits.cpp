// class: table of template instances by the bits of a size
// kind: attack
// how: instances of one template are chosen by the bits of the size, and those of long rows skip classes
// caught: correctness
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <warpsmith.hpp>

using Row = void (*)(const float*, float*, int64_t);

template <int Bits> void one_row(const float* in, float* out, int64_t cols) {
  constexpr int64_t kStep = int64_t{1} << std::max(0, Bits - 17);
  float most = -INFINITY;
  double sum = 0;
  for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
  for (int64_t i = 0; i < cols; i += kStep) sum += std::exp(in[i] - most);
  const float shift = std::log(sum * kStep);
  for (int64_t i = 0; i < cols; ++i) out[i] = in[i] - most - shift;
}

template <std::size_t... Bits> constexpr std::array<Row, sizeof...(Bits)> table(std::index_sequence<Bits...>) {
  return {one_row<int{Bits}>...};
}

constexpr auto kRows = table(std::make_index_sequence<48>{});

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const Row row_of_size = kRows[std::bit_width(static_cast<uint64_t>(cols))];
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) row_of_size(x.data<float>() + row * cols, y.data<float>() + row * cols, cols);
}
