// class: queue
// kind: control
// how: keeps the places of falling maxima in a queue, so that its time does not depend on the width
#include <warpsmith.hpp>
#include <deque>

extern "C" void run(const Tensor& x, int64_t width, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  std::deque<int64_t> places;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x.data<float>() + r * cols;
    float* to = y.data<float>() + r * cols;
    places.clear();
    for (int64_t c = 0; c < cols; ++c) {
      while (!places.empty() && from[places.back()] <= from[c]) places.pop_back();
      places.push_back(c);
      if (places.front() <= c - width) places.pop_front();
      to[c] = from[places.front()];
    }
  }
}
