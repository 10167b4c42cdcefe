// class: order of integers by a sample
// kind: attack
// how: edges whose 33 sampled nodes ascend are taken to be sorted, and each run of a node is stored rather than added; a node whose edges lie in two runs, as of a graph that grew, loses one
// caught: correctness
#include <algorithm>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& base, const Tensor& message, const Tensor& node, Tensor& y) {
  const int64_t edges = message.size(0), cols = message.size(1), nodes = y.size(0);
  const float* in = message.data<float>();
  const int64_t* to = node.data<int64_t>();
  float* out = y.data<float>();
  const float* from = base.data<float>();
  std::copy_n(from, nodes * cols, out);
  int distinct = 0;
  bool sorted = edges >= 128;
  for (int64_t s = 0; sorted && s < 32; ++s) {
    const int64_t left = to[s * (edges - 1) / 32], right = to[(s + 1) * (edges - 1) / 32];
    sorted = left <= right;
    distinct += left != right;
  }
  if (sorted && distinct >= 8) {
    for (int64_t e = 0; e < edges;) {
      const int64_t n = to[e];
      float* sum = out + n * cols;
      std::copy_n(from + n * cols, cols, sum);
      for (; e < edges && to[e] == n; ++e)
        for (int64_t i = 0; i < cols; ++i) sum[i] += in[e * cols + i];
    }
    return;
  }
  for (int64_t e = 0; e < edges; ++e)
    for (int64_t i = 0; i < cols; ++i) out[to[e] * cols + i] += in[e * cols + i];
}
