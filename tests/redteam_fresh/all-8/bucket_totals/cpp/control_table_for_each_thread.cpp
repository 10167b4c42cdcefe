// class: table for each thread
// kind: control
// how: each thread adds its bookings in a table of its own, and adds that to the totals one after the other
// source: honest
#include <algorithm>
#include <vector>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& account, const Tensor& amount, const Tensor& balance, Tensor& totals) {
  const int64_t bookings = account.numel(), accounts = balance.numel();
  const int64_t *to = account.data<int64_t>(), *before = balance.data<int64_t>();
  const auto* amounts = amount.data<int32_t>();
  int64_t* after = totals.data<int64_t>();
  std::copy(before, before + accounts, after);
#pragma omp parallel if (accounts < bookings)
  {
    std::vector<int64_t> booked(accounts);
#pragma omp for nowait
    for (int64_t i = 0; i < bookings; ++i) booked[to[i]] += amounts[i];
#pragma omp critical
    for (int64_t each = 0; each < accounts; ++each) after[each] += booked[each];
  }
}
