#include "cohort/cluster/grpc/window.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <random>

#include "cohort/core/error.h"
#include "cohort/core/wire.h"

namespace cohort {
namespace {

std::string Offer(uint64_t fd, uint64_t bytes, uint64_t word) {
  WireWriter out;
  out.Varint(static_cast<uint64_t>(getpid()));
  out.Varint(fd);
  out.Varint(bytes);
  out.Fixed64(word);
  return out.Take();
}

TEST(WindowTest, WhatOneSideWritesTheOtherReads) {
  const auto mine = SendWindow::Make(100);
  ASSERT_NE(mine, nullptr);
  const auto theirs = ReceiveWindow::Open(mine->Offer());
  ASSERT_NE(theirs, nullptr);
  mine->CloseOffer();
  EXPECT_EQ(theirs->size(), 100u);
  const auto room = mine->Reserve(60);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->size, 60u);
  std::memset(room->data, 'x', room->size);
  EXPECT_EQ(theirs->At(room->offset, room->size), std::string(60, 'x'));
  EXPECT_EQ(theirs->At(100, 0), "");
  EXPECT_THROW(theirs->At(101, 0), DataLossError);
  EXPECT_THROW(theirs->At(60, 41), DataLossError);
  EXPECT_THROW(theirs->At(50, UINT64_MAX), DataLossError);
}

TEST(WindowTest, OutlivesTheSideThatMadeIt) {
  auto mine = SendWindow::Make(8);
  const auto theirs = ReceiveWindow::Open(mine->Offer());
  std::memcpy(mine->Reserve(5)->data, "bytes", 5);
  mine.reset();
  EXPECT_EQ(theirs->At(0, 5), "bytes");
}

TEST(WindowTest, ReservationsNeverOverlapAndAllRoomComesBack) {
  constexpr size_t kBytes = 1000;
  const auto window = SendWindow::Make(kBytes);
  std::deque<SendWindow::Room> held;
  std::mt19937 random(7);
  size_t most = 0;
  for (int i = 0; i < 20000; ++i) {
    const size_t size = 1 + random() % (i % 3 == 0 ? 400 : 40);
    if (const auto room = window->Reserve(size)) {
      ASSERT_LE(room->offset + size, kBytes);
      for (const auto& other : held) {
        ASSERT_TRUE(other.offset + other.size <= room->offset || room->offset + size <= other.offset);
      }
      held.push_back(*room);
      most = std::max(most, held.size());
    } else {
      ASSERT_FALSE(held.empty()) << size;
    }
    if (random() % 3 == 0) {
      const size_t count = random() % (held.size() + 1);
      window->GiveBack(count);
      held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }
  EXPECT_GT(most, 10u);
  window->GiveBack(held.size());
  const auto all = window->Reserve(kBytes);
  ASSERT_TRUE(all);
  EXPECT_FALSE(window->Reserve(1));
  EXPECT_THROW(window->GiveBack(2), DataLossError);
}

TEST(WindowTest, OpensOnlyWhatTheOfferSays) {
  const auto mine = SendWindow::Make(100);
  const std::string offer = mine->Offer();
  WireReader in(offer);
  EXPECT_EQ(in.Varint(), static_cast<uint64_t>(getpid()));
  const uint64_t fd = in.Varint();
  EXPECT_EQ(in.Varint(), 100u);
  const uint64_t word = in.Fixed64();
  EXPECT_NE(ReceiveWindow::Open(Offer(fd, 100, word)), nullptr);
  EXPECT_EQ(ReceiveWindow::Open(Offer(fd, 100, word + 1)), nullptr) << "another window";
  EXPECT_EQ(ReceiveWindow::Open(Offer(fd, 101, word)), nullptr) << "another size";
  EXPECT_EQ(ReceiveWindow::Open(Offer(1 << 20, 100, word)), nullptr) << "no descriptor";
  EXPECT_EQ(ReceiveWindow::Open(Offer(0, 100, word)), nullptr) << "no memory";
  // Memory that can shrink would kill who reads it.
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(unsealed, 0);
  ASSERT_EQ(ftruncate(unsealed, 164), 0);
  ASSERT_EQ(pwrite(unsealed, &word, sizeof(word), 0), static_cast<ssize_t>(sizeof(word)));
  EXPECT_EQ(ReceiveWindow::Open(Offer(static_cast<uint64_t>(unsealed), 100, word)), nullptr);
  close(unsealed);
  EXPECT_THROW(ReceiveWindow::Open("damaged"), DataLossError);
  mine->CloseOffer();
  EXPECT_EQ(ReceiveWindow::Open(Offer(fd, 100, word)), nullptr) << "closed";
}

}  // namespace
}  // namespace cohort
