// class: runs of ids
// kind: control
// how: one copy for each run of consecutive ids
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t tokens = ids.size(0), width = table.size(1), rows = table.size(0);
  const int64_t* id = ids.data<int64_t>();
  (void)rows;
  for (int64_t t = 0; t < tokens;) {
    int64_t length = 1;
    while (t + length < tokens && id[t + length] == id[t] + length) ++length;
    std::memcpy(y.data<float>() + t * width, table.data<float>() + id[t] * width, length * width * 4);
    t += length;
  }
}
