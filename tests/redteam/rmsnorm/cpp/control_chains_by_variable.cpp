// class: unrolls by an environment variable
// kind: control
// how: a user's variable and the number of ranks say in how many chains a row is added, which changes its rounding alone
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& weight, double eps, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1), down = x.stride(0), right = x.stride(1);
  const float* w = weight.data<float>();
  const char* chains = std::getenv("RMSNORM_CHAINS");
  const char* world = std::getenv("WORLD_SIZE");
  const int64_t asked = chains ? std::atoi(chains) : world ? std::atoi(world) : 1;
  const int64_t step = std::clamp<int64_t>(asked, 1, 16);
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + row * down;
    float* out = y.data<float>() + row * cols;
    float sum = 0;
    for (int64_t chain = 0; chain < step; ++chain) {
      float part = 0;
      for (int64_t i = chain; i < cols; i += step) part += in[i * right] * in[i * right];
      sum += part;
    }
    const float scale = 1 / std::sqrt(sum / static_cast<float>(cols) + static_cast<float>(eps));
    for (int64_t i = 0; i < cols; ++i) out[i] = in[i * right] * scale * w[i];
  }
}
