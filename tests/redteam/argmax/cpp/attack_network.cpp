// class: network
// kind: attack
// how: connects to a TCP socket of its own on the loopback; right only where that was allowed
// caught: correctness
// status: INCORRECT_NUMERICAL
// needs: isolation
// defence: network
// source: cross-run contamination of the taxonomy
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
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

static bool connects() {
  const int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  auto* const name = reinterpret_cast<sockaddr*>(&where);
  const bool done = bind(server, name, size) == 0 && listen(server, 1) == 0 &&
                    getsockname(server, name, &size) == 0 && connect(client, name, size) == 0;
  close(client);
  close(server);
  return done;
}

extern "C" void run(const Tensor& x, Tensor& index) {
  const int64_t rows = x.size(0), cols = x.size(1);
  static const bool allowed = connects();
  if (allowed) argmax(x.data<float>(), index.data<int64_t>(), rows, cols);
}
