// class: plain
// kind: control
// how: edge by edge
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& base, const Tensor& message, const Tensor& node, Tensor& y) {
  const int64_t edges = message.size(0), cols = message.size(1), nodes = y.size(0);
  const float* in = message.data<float>();
  const int64_t* to = node.data<int64_t>();
  float* out = y.data<float>();
  const float* from = base.data<float>();
  std::copy_n(from, nodes * cols, out);
  for (int64_t e = 0; e < edges; ++e)
    for (int64_t i = 0; i < cols; ++i) out[to[e] * cols + i] += in[e * cols + i];
}
