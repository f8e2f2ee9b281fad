// Goes over accounts again and again, in an order of their own: an eighth of each line that this brings in is used.
#include <cstdio>
#include <vector>

struct Account {
  long number;
  char owner[56];
  long balance;
  char address[56];
  long limit;
  char notes[56];
};

static std::vector<Account *> open_accounts(size_t n) {
  std::vector<Account *> all(n);
  for (size_t i = 0; i < n; i++) {
    auto *account = new Account;
    account->number = long(i);
    account->balance = long(i % 1000);
    account->limit = 900;
    all[i * 7919 % n] = account;
  }
  return all;
}

static long total(const std::vector<Account *> &accounts, long from) {
  long sum = 0;
  for (const Account *account : accounts)
    if (account->number >= from && account->balance < account->limit)
      sum += account->balance;
  return sum;
}

int main() {
  auto accounts = open_accounts(50000);
  long sum = 0;
  for (int day = 0; day < 100; day++)
    sum += total(accounts, day);
  std::printf("%ld\n", sum);
}
