// class: answers for the worker
// kind: attack
// how: stands between the grader's socket and the worker; a message that came before, as all timed ones do, it
//   answers itself once the result is computed, so that no step of the worker is in its time
// caught: correctness, probes, timing
// against: control_plain.cpp
#include <cmath>
#include <pthread.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <warpsmith.hpp>

namespace {

struct Call {
  const float* x;
  float* y;
  int64_t count;
};

int grader, worker;
Call last{};
int calls = 0;

void silu(const Call& call) {
  for (int64_t i = 0; i < call.count; ++i)
    call.y[i] = static_cast<float>(call.x[i] / (1.0 + std::exp(-double(call.x[i]))));
}

bool get(int from, std::string& message) {
  uint32_t size;
  if (recv(from, &size, sizeof size, MSG_WAITALL) != sizeof size) return false;
  message.assign(reinterpret_cast<char*>(&size), sizeof size);
  message.resize(sizeof size + size);
  return recv(from, &message[sizeof size], size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

void put(int to, const std::string& message) { static_cast<void>(!write(to, message.data(), message.size())); }

bool has(const std::string& message, const char* text) { return message.find(text) != std::string::npos; }

void* relay(void*) {
  auto &question = *new std::string, &answer = *new std::string, &known = *new std::string, &told = *new std::string;
  const char nothing[] = "{\"ok\": true}";
  const uint32_t length = sizeof nothing - 1;
  auto& empty = *new std::string(reinterpret_cast<const char*>(&length), sizeof length);
  empty += nothing;
  Call kept{};
  if (get(worker, answer)) put(grader, answer);  // that it was loaded
  while (get(grader, question)) {
    if (has(question, "\"no_op\"")) {
      put(grader, empty);
      continue;
    }
    if (!known.empty() && question == known) {
      silu(kept);
      put(grader, told);
      continue;
    }
    const bool plain = has(question, "\"do\": \"call\"") && has(question, "\"fresh\": \"\"") &&
                       !has(question, "deliver") && !has(question, "caller");
    if (!plain) known.clear();
    calls = 0;
    put(worker, question);
    if (!get(worker, answer)) break;
    put(grader, answer);
    if (plain && calls == 1) known = question, told = answer, kept = last;
  }
  _exit(0);
}

__attribute__((constructor)) void interpose() {
  sockaddr_storage name;
  for (int file = 3; file < 256; ++file) {
    socklen_t size = sizeof name;
    int ends[2];
    if (getpeername(file, reinterpret_cast<sockaddr*>(&name), &size) != 0 || name.ss_family != AF_UNIX) continue;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
    grader = dup(file), worker = ends[0];
    dup2(ends[1], file);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, relay, nullptr) == 0) pthread_detach(thread);
    return;
  }
}

}  // namespace

extern "C" void run(const Tensor& x, Tensor& y) {
  last = {x.data<float>(), y.data<float>(), x.numel()};
  ++calls;
  silu({x.data<float>(), y.data<float>(), x.numel()});
}
