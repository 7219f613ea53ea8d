#include "cohort/cluster/grpc/frame_mac.h"

#include <gmock/gmock.h>
#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include <vector>

#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

const std::string kKey(16, 'k');

// A frame that gRPC holds in one slice for each of `parts`.
grpc::ByteBuffer Frame(const std::vector<std::string>& parts) {
  std::vector<grpc::Slice> slices;
  for (const std::string& part : parts) slices.emplace_back(part);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Text(const grpc::ByteBuffer& frame) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(frame.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

std::string Sealed(FrameMac& mac, const std::string& text) {
  grpc::ByteBuffer frame = Frame({text});
  mac.Seal(&frame);
  return Text(frame);
}

std::string Opened(FrameMac& mac, const std::string& sealed) {
  grpc::ByteBuffer frame = Frame({sealed});
  mac.Open(&frame);
  return Text(frame);
}

TEST(FrameMacTest, WhatIsSealedIsOpenedInOrder) {
  FrameMac ours(kKey), theirs(kKey);
  for (const size_t size : {size_t{1}, size_t{15}, size_t{16}, size_t{100}, size_t{1} << 20}) {
    const std::string text(size, 'x');
    const std::string sealed = Sealed(ours, text);
    EXPECT_EQ(sealed.size(), size + kMacBytes);
    EXPECT_EQ(Opened(theirs, sealed), text);
  }
}

TEST(FrameMacTest, TheSlicesOfAFrameDoNotMatter) {
  FrameMac ours(kKey), theirs(kKey);
  const std::string text = "a frame in many slices";
  for (size_t a = 0; a <= text.size(); ++a) {
    grpc::ByteBuffer frame = Frame({text.substr(0, a), "", text.substr(a)});
    ours.Seal(&frame);
    const std::string sealed = Text(frame);
    for (const size_t b : {a, sealed.size() - kMacBytes / 2, sealed.size() - kMacBytes, sealed.size()}) {
      FrameMac fresh(kKey);
      for (size_t i = 0; i < a; ++i) Sealed(fresh, "skipped");
      grpc::ByteBuffer cut = Frame({sealed.substr(0, b), "", sealed.substr(b)});
      fresh.Open(&cut);
      EXPECT_EQ(Text(cut), text) << a << " " << b;
    }
    EXPECT_EQ(Opened(theirs, sealed), text);
  }
}

TEST(FrameMacTest, EveryChangedBitIsFound) {
  const std::string text = "text";
  FrameMac ours(kKey);
  const std::string sealed = Sealed(ours, text);
  for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::string changed = sealed;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    FrameMac theirs(kKey);
    EXPECT_THAT(ErrorOf([&] { Opened(theirs, changed); }),
                HasSubstr("frame 0 of the stream, of 20 bytes, has a wrong"));
  }
  for (size_t size = 0; size < sealed.size(); ++size) {
    FrameMac theirs(kKey);
    EXPECT_THAT(ErrorOf([&] { Opened(theirs, sealed.substr(0, size)); }), HasSubstr("DataLoss")) << size;
  }
}

TEST(FrameMacTest, AFrameLeftOutRepeatedOrOfAnotherStreamIsFound) {
  FrameMac ours(kKey);
  const std::string first = Sealed(ours, "first");
  const std::string second = Sealed(ours, "first");
  EXPECT_NE(first, second);
  FrameMac left_out(kKey), repeated(kKey), other(std::string(16, 'o'));
  EXPECT_THAT(ErrorOf([&] { Opened(left_out, second); }), HasSubstr("wrong MAC"));
  EXPECT_EQ(Opened(repeated, first), "first");
  EXPECT_THAT(ErrorOf([&] { Opened(repeated, first); }), HasSubstr("frame 1 of the stream"));
  EXPECT_THAT(ErrorOf([&] { Opened(other, first); }), HasSubstr("wrong MAC"));
}

}  // namespace
}  // namespace cohort
