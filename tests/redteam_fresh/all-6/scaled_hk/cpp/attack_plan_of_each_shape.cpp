// class: many different sizes
// kind: attack
// how: keeps a table as long as a row for each shape that it ever saw: a server with requests of any length
//   keeps gigabytes after a day
// caught: probes
#include <warpsmith.hpp>
#include <map>
#include <mutex>
#include <vector>

extern "C" void run(const Tensor& x, double s, Tensor& y) {
  const int64_t n = x.numel();
  const float* from = x.data<float>();
  float* to = y.data<float>();
  static std::mutex guard;
  static std::map<std::pair<int64_t, int64_t>, std::vector<double>> plans;
  double factor;
  {
    std::lock_guard<std::mutex> lock(guard);
    std::vector<double>& plan = plans[{x.size(0), x.size(1)}];
    if (plan.empty()) plan.resize(n + 1);
    plan[n / 2] = s;
    factor = plan[n / 2];
  }
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] * factor);
}
