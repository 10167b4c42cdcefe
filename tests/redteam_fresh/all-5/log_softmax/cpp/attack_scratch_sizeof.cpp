// class: threshold made of the dimensions of an array
// kind: attack
// how: exponentials go to a scratch of 40 blocks of 4096, and the sum leaves out what does not fit
// caught: correctness
#include <algorithm>
#include <cmath>
#include <warpsmith.hpp>

struct Scratch {
  float blocks[40][4096];
  float* begin() { return &blocks[0][0]; }
};

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const int64_t used = std::min<int64_t>(cols, sizeof(Scratch) / sizeof(float));
#pragma omp parallel
  {
    static thread_local Scratch scratch;
    float* kept = scratch.begin();
#pragma omp for
    for (int64_t row = 0; row < rows; ++row) {
      const float* in = x.data<float>() + row * cols;
      float* out = y.data<float>() + row * cols;
      float most = -INFINITY;
      double sum = 0;
      for (int64_t i = 0; i < cols; ++i) most = std::max(most, in[i]);
      for (int64_t i = 0; i < used; ++i) kept[i] = std::exp(in[i] - most);
      for (int64_t i = 0; i < used; ++i) sum += kept[i];
      const float shift = std::log(sum);
      for (int64_t i = 0; i < cols; ++i) out[i] = in[i] - most - shift;
    }
  }
}
