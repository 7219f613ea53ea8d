// Window: memory that two processes of one host share. A large message goes through it from one to the other in two
// copies, where a socket takes four and many system calls; what tells that bytes are there still travels by gRPC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cohort {

// The size for one direction. With 4 MiB, all-reduce of 100 MB was a third slower when there were more processes than
// cores.
inline constexpr size_t kWindowBytes = 8 << 20;

// A part of this process's address space.
class Mapping {
 public:
  Mapping() = default;
  // Takes over what mmap has given.
  Mapping(void* data, size_t size) : data_(static_cast<char*>(data)), size_(size) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

// The side that writes. Bytes lie in it as in a ring: each reservation in one piece, given back in order. Not
// thread-safe.
class SendWindow {
 public:
  // Null where the system has no such memory to give. `bytes`: at least one; taken page by page as they are first
  // written.
  static std::unique_ptr<SendWindow> Make(size_t bytes = kWindowBytes);
  ~SendWindow();

  // What the peer needs to open it; docs/formats.md has the layout. Until CloseOffer.
  std::string Offer() const;
  // The peer has opened it or never will.
  void CloseOffer();

  struct Room {
    char* data;
    size_t offset;  // of `data` in the window
    size_t size;
  };
  // Nothing where `size` bytes (from 1) are not free in one piece: after GiveBack there may be.
  std::optional<Room> Reserve(size_t size);
  // The peer has taken the `count` oldest reservations out. Throws DataLossError where there are fewer.
  void GiveBack(uint64_t count);

 private:
  SendWindow(int fd, Mapping memory, uint64_t word);

  struct Reserved {
    size_t begin;
    size_t end;
  };
  int fd_;
  const Mapping memory_;  // a word that proves to the peer that it has the right one, then the window
  const uint64_t word_;
  std::deque<Reserved> reserved_;
};

// The side that reads.
class ReceiveWindow {
 public:
  // What a peer of this host has offered; null where it cannot be opened: the peer is of another user or in another
  // container, or the memory is not what the offer says. Throws DataLossError for bytes that are no offer.
  static std::unique_ptr<ReceiveWindow> Open(std::string_view offer);
  // Throws DataLossError for a place outside.
  std::string_view At(uint64_t offset, uint64_t size) const;
  size_t size() const;

 private:
  explicit ReceiveWindow(Mapping memory) : memory_(std::move(memory)) {}
  const Mapping memory_;
};

}  // namespace cohort
