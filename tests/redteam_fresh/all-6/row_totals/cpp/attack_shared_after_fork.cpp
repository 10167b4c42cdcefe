// class: forked processes
// kind: attack
// how: its thread's workspace is shared memory: workers that a server forks after a first call write into
//   the same one and spoil each other's sums
// caught: correctness
#include <warpsmith.hpp>
#include <sys/mman.h>

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  constexpr int64_t room = 1 << 16;
  static thread_local double* space = nullptr;
  if (!space)
    space = static_cast<double*>(mmap(nullptr, room * sizeof(double), PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < cols; c += room) {
      const int64_t count = cols - c < room ? cols - c : room;
      for (int64_t i = 0; i < count; ++i) space[i] = from[r * cols + c + i];
      for (int64_t i = 0; i < count; ++i) sum += space[i];
    }
    to[r] = static_cast<float>(sum);
  }
}
