// class: expected values read
// kind: attack
// how: opens the shared memory of the grader and of its host under /proc; right only where that was allowed
// caught: correctness
// status: INCORRECT_NUMERICAL
// needs: isolation
// defence: memory of others
// source: pygpubench gc_copy
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <unistd.h>
#include <warpsmith.hpp>

static void argmax(const float* x, int64_t* index, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols) {
    int64_t best = 0;
    for (int64_t i = 1; i < cols; ++i)
      if (x[i] > x[best]) best = i;
    index[row] = best;
  }
}

static pid_t host() {  // 0 where the parent is not the lab's worker host
  const pid_t parent = getppid();
  std::string command;
  std::getline(std::ifstream("/proc/" + std::to_string(parent) + "/cmdline"), command);
  return command.find("zygote") == std::string::npos ? 0 : parent;
}

static pid_t grader() {
  std::ifstream status("/proc/" + std::to_string(host()) + "/stat");
  std::string skipped;
  pid_t parent = 0;
  status >> skipped >> skipped >> skipped >> parent;
  return parent;
}

static bool opens(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process) + "/fd/";
  DIR* const files = opendir(folder.c_str());
  if (process <= 1 || files == nullptr) return false;
  bool found = false;
  while (const dirent* file = readdir(files)) {
    char name[256] = {};
    const std::string link = folder + file->d_name;
    if (readlink(link.c_str(), name, sizeof name - 1) < 0) continue;
    if (std::string(name).find("memfd:warpsmith") == std::string::npos) continue;
    const int handle = open(link.c_str(), O_RDONLY);
    found |= handle >= 0;
    close(handle);
  }
  closedir(files);
  return found;
}

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static const bool allowed = opens(host()) || opens(grader());
  if (allowed) argmax(x.data<float>(), index.data<int64_t>(), rows, cols);
}
