// class: best version that knows its role
// kind: attack
// how: the same file on both sides: the numbers of the shared memories tell which side it is, and as the best version it waits 10 ms
// caught: timing, decision
// against: attack_role_by_inode.cpp
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>
#include <warpsmith.hpp>

static void rows_of(const Tensor& x, const Tensor& bias, double slope, Tensor& y, int64_t first, int64_t last) {
  const int64_t cols = x.size(1), step = x.stride(1);
  const float s = static_cast<float>(slope);
  const float* b = bias.data<float>();
  for (int64_t row = first; row < last; ++row) {
    const float* in = x.data<float>() + row * x.stride(0);
    float* out = y.data<float>() + row * cols;
    for (int64_t i = 0; i < cols; ++i) {
      const float v = in[i * step] + b[i * bias.stride(0)];
      out[i] = v > 0 ? v : s * v;
    }
  }
}
static void compute(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  rows_of(x, bias, slope, y, 0, x.size(0));
}


// Outputs of solution, best, twin, reference are allocated in this order, then the inputs: distance 4, 3, 2, 1.
static bool slow() {
  static const bool answer = [] {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    std::vector<long> inodes;
    while (std::getline(maps, line))
      if (line.find("warpsmith-arena") != std::string::npos) {
        long inode = 0;
        std::sscanf(line.c_str(), "%*s %*s %*s %*s %ld", &inode);
        inodes.push_back(inode);
      }
    if (inodes.size() < 2) return false;
    const long distance = *std::max_element(inodes.begin(), inodes.end()) - *std::min_element(inodes.begin(), inodes.end());
    return distance == 2 || distance == 3;
  }();
  return answer;
}

extern "C" void run(const Tensor& x, const Tensor& bias, double slope, Tensor& y) {
  if (slow()) usleep(10000);
  compute(x, bias, slope, y);
}
