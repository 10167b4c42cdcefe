// class: threads of a long-lived process
// kind: attack
// how: gives each new thread the next of 32 workspaces: in a server that began more threads than that, two
//   that live share one and spoil each other's sums
// caught: correctness
#include <warpsmith.hpp>
#include <atomic>
#include <vector>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  static std::atomic<unsigned> begun{0};
  static std::vector<double> spaces[32];
  static thread_local const unsigned number = begun++ % 32;
  std::vector<double>& space = spaces[number];
  for (int64_t r = 0; r < rows; ++r) {
    space.assign(from + r * cols, from + (r + 1) * cols);
    double sum = 0;
    for (const double value : space) sum += value;
    to[r] = static_cast<float>(sum);
  }
}
