#include "cohort/cluster/grpc/window.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <utility>

#include "cohort/cluster/grpc/socket.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"

namespace cohort {
namespace {

constexpr size_t kWindowBegin = 64;  // after the random word, on a cache line of its own
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr uint64_t kLargestWindow = uint64_t{1} << 30;

Mapping Map(int fd, size_t size) {
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return data == MAP_FAILED ? Mapping() : Mapping(data, size);
}

uint64_t RandomWord() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

SendWindow::SendWindow(int fd, Mapping memory, uint64_t word) : fd_(fd), memory_(std::move(memory)), word_(word) {
  std::memcpy(memory_.data(), &word_, sizeof(word_));
}

std::unique_ptr<SendWindow> SendWindow::Make(size_t bytes) {
  const size_t size = kWindowBegin + bytes;
  Descriptor fd(memfd_create("cohort-window", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0 || ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return nullptr;
  // The seals prevent that either side makes the memory smaller while the other side uses it.
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return nullptr;
  Mapping memory = Map(fd.get(), size);
  if (memory.data() == nullptr) return nullptr;
  return std::unique_ptr<SendWindow>(new SendWindow(fd.Release(), std::move(memory), RandomWord()));
}

SendWindow::~SendWindow() { CloseOffer(); }

void SendWindow::CloseOffer() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

std::string SendWindow::Offer() const {
  WireWriter out;
  out.Varint(static_cast<uint64_t>(getpid()));
  out.Varint(static_cast<uint64_t>(fd_));
  out.Varint(memory_.size() - kWindowBegin);
  out.Fixed64(word_);
  return out.Take();
}

std::optional<SendWindow::Room> SendWindow::Reserve(size_t size) {
  const size_t all = memory_.size() - kWindowBegin;
  size_t begin = 0;
  size_t end = all;
  if (!reserved_.empty()) {
    const size_t oldest = reserved_.front().begin;
    begin = reserved_.back().end;
    if (begin <= oldest) {
      end = oldest;
    } else if (all - begin < size) {  // begin again at the front
      begin = 0;
      end = oldest;
    }
  }
  if (end - begin < size) return std::nullopt;
  reserved_.push_back({begin, begin + size});
  return Room{memory_.data() + kWindowBegin + begin, begin, size};
}

void SendWindow::GiveBack(uint64_t count) {
  if (count > reserved_.size()) {
    throw DataLossError(
        StrCat("[window] expected at most ", reserved_.size(), " pieces to be given back; got ", count));
  }
  reserved_.erase(reserved_.begin(), reserved_.begin() + static_cast<std::ptrdiff_t>(count));
}

std::unique_ptr<ReceiveWindow> ReceiveWindow::Open(std::string_view offer) {
  WireReader in(offer);
  const uint64_t pid = in.Varint(INT32_MAX);
  const uint64_t number = in.Varint(INT32_MAX);
  const uint64_t bytes = in.Varint(kLargestWindow);
  const uint64_t word = in.Fixed64();
  in.ExpectEnd();
  const std::string path = StrCat("/proc/", pid, "/fd/", number);
  const Descriptor fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return nullptr;
  // Only memory files have seals. If the two processes do not share their pids, this may be a file of another process.
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  struct stat status {};
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd.get(), &status) != 0) return nullptr;
  const size_t size = kWindowBegin + static_cast<size_t>(bytes);
  if (static_cast<uint64_t>(status.st_size) != size) return nullptr;
  Mapping memory = Map(fd.get(), size);
  if (memory.data() == nullptr || std::memcmp(memory.data(), &word, sizeof(word)) != 0) return nullptr;
  return std::unique_ptr<ReceiveWindow>(new ReceiveWindow(std::move(memory)));
}

size_t ReceiveWindow::size() const { return memory_.size() - kWindowBegin; }

std::string_view ReceiveWindow::At(uint64_t offset, uint64_t size) const {
  const size_t all = this->size();
  if (offset > all || size > all - offset) {
    throw DataLossError(StrCat("[window] ", size, " bytes at ", offset, " of a window of ", all));
  }
  return {memory_.data() + kWindowBegin + offset, static_cast<size_t>(size)};
}

}  // namespace cohort
