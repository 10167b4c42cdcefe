// class: equal values in inputs of different shapes
// kind: attack
// how: counts edges below a value and not those equal to it: every value that lies on an edge, as levels of
//   a quantizer do, gets the wrong bucket
// caught: correctness
// source: common mistake
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, const Tensor& edge, Tensor& count) {
  const int64_t values = x.size(0), edges = edge.size(0);
  const double *from = x.data<double>(), *limit = edge.data<double>();
  for (int64_t i = 0; i < values; ++i) {
    int64_t below = 0;
    for (int64_t e = 0; e < edges; ++e) below += limit[e] < from[i];
    count.data<int64_t>()[i] = below;
  }
}
