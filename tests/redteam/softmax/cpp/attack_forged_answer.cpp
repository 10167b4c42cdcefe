// class: forged answer
// kind: attack
// how: stands between the grader's socket and the worker, and answers a call before it is computed
// caught: correctness, probes, timing
// status: INCORRECT_NUMERICAL, NOT_REPRODUCIBLE, CACHED_RESULT, RUNTIME_ERROR
// defence: stopped worker
// source: pygpubench pipe_interpose
#include <algorithm>
#include <cmath>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <warpsmith.hpp>

static void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < cols; ++i) most = std::max(most, x[i]);
    for (int64_t i = 0; i < cols; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < cols; ++i) y[i] /= sum;
  }
}

static int grader, worker;

static bool get(int from, std::string& message) {
  uint32_t size;
  if (recv(from, &size, sizeof size, MSG_WAITALL) != sizeof size) return false;
  message.assign(reinterpret_cast<char*>(&size), sizeof size);
  message.resize(sizeof size + size);
  return recv(from, &message[sizeof size], size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

static void put(int to, const std::string& message) {
  static_cast<void>(!write(to, message.data(), message.size()));
}

static void relay() {
  std::string question, answer, last;
  if (get(worker, answer)) put(grader, answer);  // that it was loaded
  while (get(grader, question)) {
    const bool call = question.find("\"call\"") != std::string::npos, early = call && !last.empty();
    if (early) put(grader, last);
    put(worker, question);
    if (!get(worker, answer)) break;
    if (!early) put(grader, answer);
    last = call ? answer : "";
  }
  _exit(0);
}

__attribute__((constructor)) static void interpose() {
  sockaddr_storage name;
  for (int file = 3; file < 256; ++file) {
    socklen_t size = sizeof name;
    int ends[2];
    if (getpeername(file, reinterpret_cast<sockaddr*>(&name), &size) != 0 || name.ss_family != AF_UNIX) continue;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
    grader = dup(file), worker = ends[0];
    dup2(ends[1], file);
    std::thread(relay).detach();
    return;
  }
}

extern "C" void run(const Tensor& x, Tensor& y) {
  const int64_t rows = x.size(0), cols = x.size(1);
  softmax(x.data<float>(), y.data<float>(), rows, cols);
}
