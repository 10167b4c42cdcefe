// class: patched clock
// kind: attack
// how: overwrites clock_gettime of its process: time stands still there while it computes everything twice
// caught: lint, decision
// against: control_plain.cpp
// defence: clock in another process
// source: gpu-mode#162
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <sys/mman.h>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

#if defined(__x86_64__)
static int frozen(clockid_t, timespec* now) {
  *now = {1000, 0};
  return 0;
}

__attribute__((constructor)) static void patch() {
  unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};  // mov rax, frozen; jmp rax
  const auto target = reinterpret_cast<uintptr_t>(&frozen);
  std::memcpy(jump + 2, &target, sizeof target);
  auto* code = static_cast<unsigned char*>(dlsym(RTLD_DEFAULT, "clock_gettime"));
  auto* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(code) & ~uintptr_t{4095});
  if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) std::memcpy(code, jump, sizeof jump);
}
#endif

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  for (int twice = 0; twice < 2; ++twice) {
    softmax(x.data<float>(), y.data<float>(), rows, cols);
    asm volatile("" ::: "memory");
  }
}
