// Memory of fake cards. All of it has one protection key. A new thread has no rights for the key, unless the thread
// that started it has them.
#include "cohort/backends/cuda/fake/fake_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

namespace cohort::cuda {
namespace {

void TellAndEnd(int, siginfo_t* info, void*) {
  constexpr char kKey[] = "[fake driver] a thread of the host has read or written memory of a card\n";
  constexpr char kOther[] = "[fake driver] an address that is no memory was used\n";
  const bool of_card = info->si_code == SEGV_PKUERR;
  (void)!write(STDERR_FILENO, of_card ? kKey : kOther, (of_card ? sizeof(kKey) : sizeof(kOther)) - 1);
  // The instruction is tried again, and ends the process with SIGSEGV.
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &by_default, nullptr);
}

// Returns the key, or -1 if there is none.
int KeyOfCards() {
  static const int key = [] {
    const int made = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    struct sigaction now {};
    sigaction(SIGSEGV, nullptr, &now);
    if (made < 0 || now.sa_handler != SIG_DFL) return made;  // a sanitizer tells more
    struct sigaction tell {};
    tell.sa_sigaction = TellAndEnd;
    tell.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &tell, nullptr);
    return made;
  }();
  return key;
}

size_t RoundedUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Where a block lies: at the end of its pages, with one more behind them.
struct Pages {
  size_t size;
  size_t offset;

  explicit Pages(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size = RoundedUp(bytes, page) + page;
    offset = size - page - RoundedUp(bytes, static_cast<size_t>(kFakeAlignment));
  }
  size_t usable() const { return size - static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
};

}  // namespace

void* NewCardMemory(size_t bytes) {
  const Pages pages(bytes);
  void* const begin = mmap(nullptr, pages.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  constexpr int kReadWrite = PROT_READ | PROT_WRITE;
  const int key = KeyOfCards();
  if (mprotect(begin, pages.usable(), kReadWrite) != 0) {
    munmap(begin, pages.size);
    return nullptr;
  }
  void* const data = static_cast<char*>(begin) + pages.offset;
  std::memset(data, kFakePoison, bytes);
  if (key >= 0) pkey_mprotect(begin, pages.usable(), kReadWrite, key);
  return data;
}

void DeleteCardMemory(void* data, size_t bytes) {
  const Pages pages(bytes);
  munmap(static_cast<char*>(data) - pages.offset, pages.size);
}

bool CardMemoryIsGuarded() { return KeyOfCards() >= 0; }

void BecomeThreadOfCard() {
  if (KeyOfCards() >= 0) pkey_set(KeyOfCards(), 0);
}

CardMemoryAccess::CardMemoryAccess() : before_(KeyOfCards() < 0 ? 0 : pkey_get(KeyOfCards())) { BecomeThreadOfCard(); }
CardMemoryAccess::~CardMemoryAccess() {
  if (KeyOfCards() >= 0) pkey_set(KeyOfCards(), static_cast<unsigned>(before_));
}

}  // namespace cohort::cuda
