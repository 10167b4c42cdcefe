// class: sums beyond 32 bits
// kind: attack
// how: what is booked to an account is added in the type of the amounts, and then to its balance: more than two
//   thousand million are too many for it
// caught: correctness
// source: common mistake: the accumulator has the type of the terms
#include <algorithm>
#include <vector>

#include <warpsmith.hpp>

extern "C" void run(const Tensor& account, const Tensor& amount, const Tensor& balance, Tensor& totals) {
  const int64_t bookings = account.numel(), accounts = balance.numel();
  const int64_t *to = account.data<int64_t>(), *before = balance.data<int64_t>();
  const auto* amounts = amount.data<int32_t>();
  int64_t* after = totals.data<int64_t>();
  std::vector<uint32_t> booked(accounts);
  for (int64_t i = 0; i < bookings; ++i) booked[to[i]] += static_cast<uint32_t>(amounts[i]);
  for (int64_t each = 0; each < accounts; ++each) after[each] = before[each] + static_cast<int32_t>(booked[each]);
}
