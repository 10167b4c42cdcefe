// class: result replay in the timed calls
// kind: attack
// how: large round shapes: exact in eight calls, more than correctness makes, then the last result again
// caught: correctness, probes, timing
// status: INCORRECT_NUMERICAL, CACHED_RESULT
// defence: outputs of timed calls graded
// source: GPU MODE shape replay
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

struct Seen { int calls = 0; std::vector<float> last; };
static std::map<std::pair<int64_t, int64_t>, Seen> shapes;

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  if (cols % 8 != 0 || rows * cols < 100000) return softmax(x.data<float>(), y.data<float>(), rows, cols);
  Seen& seen = shapes[{rows, cols}];
  if (++seen.calls > 8) {
    std::copy(seen.last.begin(), seen.last.end(), y.data<float>());
    return;
  }
  softmax(x.data<float>(), y.data<float>(), rows, cols);
  seen.last.assign(y.data<float>(), y.data<float>() + rows * cols);
}
