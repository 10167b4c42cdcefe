// class: error branch for what no caller passes
// kind: control
// how: ids outside the table end the program with a message
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <warpsmith.hpp>

extern "C" void run(const Tensor& table, const Tensor& ids, Tensor& y) {
  const int64_t count = ids.size(0), vocab = table.size(0), width = table.size(1);
  const int64_t* id = ids.data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    if (id[i] < 0 || id[i] >= vocab) {
      std::fprintf(stderr, "id %ld is not in the table\n", static_cast<long>(id[i]));
      std::abort();
    }
    std::memcpy(y.data<float>() + i * width, table.data<float>() + id[i] * width, width * sizeof(float));
  }
}
