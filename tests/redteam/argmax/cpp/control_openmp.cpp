// class: parallel within a row
// kind: control
// how: each thread takes a part of a row; the parts are compared in order, so that ties go to the first
#include <omp.h>
#include <vector>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  int64_t* out = index.data<int64_t>();
  const int64_t parts = omp_get_max_threads(), width = (cols + parts - 1) / parts;
  std::vector<int64_t> best(static_cast<size_t>(rows * parts), -1);
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t part = 0; part < parts; ++part) {
      const float* in = from + row * cols;
      const int64_t end = (part + 1) * width < cols ? (part + 1) * width : cols;
      int64_t place = -1;
      for (int64_t i = part * width; i < end; ++i)
        if (place < 0 || in[i] > in[place]) place = i;
      best[static_cast<size_t>(row * parts + part)] = place;
    }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t* own = best.data() + row * parts;
    int64_t place = own[0];
    for (int64_t part = 1; part < parts; ++part)
      if (own[part] >= 0 && from[row * cols + own[part]] > from[row * cols + place]) place = own[part];
    out[row] = place;
  }
}
