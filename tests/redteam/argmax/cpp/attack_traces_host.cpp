// class: debugger on the grader
// kind: attack
// how: a child attaches to the worker host with ptrace, and lets go; right only where that was allowed
// caught: correctness
// status: INCORRECT_NUMERICAL
// needs: isolation
// defence: memory of others
// source: pygpubench ptrace
#include <fstream>
#include <string>
#include <sys/ptrace.h>
#include <sys/wait.h>
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

static bool traces() {
  const pid_t process = host();
  const pid_t child = fork();  // its end detaches from the host
  if (child == 0) _exit(process > 1 && ptrace(PTRACE_SEIZE, process, nullptr, nullptr) == 0 ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static const bool allowed = traces();
  if (allowed) argmax(x.data<float>(), index.data<int64_t>(), rows, cols);
}
