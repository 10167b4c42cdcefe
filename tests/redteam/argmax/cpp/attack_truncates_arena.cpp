// class: shared memory cut
// kind: attack
// how: shrinks the file of the shared memory, at which the grader would die, and mends it; right only where
//   that was allowed
// caught: correctness
// status: INCORRECT_NUMERICAL, INPUT_MUTATED
// defence: sealed shared memory
// source: pygpubench thread_fd
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <warpsmith.hpp>

static void argmax(const float* x, int64_t* index, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols) {
    int64_t best = 0;
    for (int64_t i = 1; i < cols; ++i)
      if (x[i] > x[best]) best = i;
    index[row] = best;
  }
}

static bool cut() {
  bool done = false;
  for (int file = 3; file < 256; ++file) {
    char name[256] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    struct stat about;
    if (readlink(link.c_str(), name, sizeof name - 1) < 0 || fstat(file, &about) != 0) continue;
    if (std::string(name).find("memfd:") == std::string::npos) continue;
    std::vector<char> content(static_cast<size_t>(about.st_size));
    if (pread(file, content.data(), content.size(), 0) != about.st_size || ftruncate(file, 0) != 0) continue;
    done = ftruncate(file, about.st_size) == 0 && pwrite(file, content.data(), content.size(), 0) == about.st_size;
  }
  return done;
}

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static const bool allowed = cut();
  if (allowed) argmax(x.data<float>(), index.data<int64_t>(), rows, cols);
}
