// class: binary search
// kind: control
// how: sorts the edges once a call and finds the end of those that are not above each value
#include <warpsmith.hpp>

#include <algorithm>
#include <vector>

extern "C" void run(const Tensor& x, const Tensor& edge, Tensor& count) {
  const double* from = x.data<double>();
  std::vector<double> edges(edge.data<double>(), edge.data<double>() + edge.numel());
  std::sort(edges.begin(), edges.end());
  for (int64_t i = 0; i < x.numel(); ++i)
    count.data<int64_t>()[i] = std::upper_bound(edges.begin(), edges.end(), from[i]) - edges.begin();
}
