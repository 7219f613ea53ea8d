#include "cohort/collective/gloo/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Meshes = std::vector<std::unique_ptr<GlooMesh>>;

// Two ranks, connected.
class GlooMeshTest : public ::testing::Test {
 protected:
  void SetUp() override {
    meshes_ = MakeGlooMeshes("127.0.0.1", {0, 1}, 2);
    const std::vector<std::string> endpoints = {meshes_[0]->Endpoint(), meshes_[1]->Endpoint()};
    auto other = std::async(std::launch::async, [&] { meshes_[1]->Connect(endpoints); });
    meshes_[0]->Connect(endpoints);
    other.get();
  }
  static void Sum(GlooMesh& mesh, std::vector<float>& values) {
    mesh.AllReduce(
        values.data(), values.size(), sizeof(float),
        [](void* out, const void* a, const void* b, size_t n) {
          for (size_t i = 0; i < n; ++i) {
            static_cast<float*>(out)[i] = static_cast<const float*>(a)[i] + static_cast<const float*>(b)[i];
          }
        },
        7);
  }
  Meshes meshes_;
};

TEST_F(GlooMeshTest, ReducesByBothAlgorithms) {
  for (const size_t count : {size_t{3}, size_t{9'000'000}}) {
    std::vector<float> ones(count, 1), twos(count, 2);
    auto other = std::async(std::launch::async, [&] { Sum(*meshes_[1], twos); });
    Sum(*meshes_[0], ones);
    other.get();
    EXPECT_EQ(ones, std::vector<float>(count, 3));
    EXPECT_EQ(ones, twos);
  }
}

TEST_F(GlooMeshTest, WhoeverWaitsIsWokenAndLaterCallsFail) {
  std::vector<float> ones(1'000'000, 1);
  auto waits =
      std::async(std::launch::async, [&] { return MessageOf<UnavailableError>([&] { Sum(*meshes_[0], ones); }); });
  EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  meshes_[0]->Break();
  ASSERT_EQ(waits.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_THAT(waits.get(), AllOf(HasSubstr("all-reduce"), HasSubstr("were closed")));
  EXPECT_THAT(MessageOf<UnavailableError>([&] { Sum(*meshes_[0], ones); }), HasSubstr("were closed"));
}

TEST_F(GlooMeshTest, APeerThatIsGoneIsNamed) {
  std::vector<float> ones(1000, 1);
  meshes_[1]->Close();
  EXPECT_THAT(MessageOf<UnavailableError>([&] {
                for (int i = 0; i < 1000; ++i) Sum(*meshes_[0], ones);
              }),
              AllOf(HasSubstr("all-reduce"), HasSubstr("rank 1")));
}

// One of two dials the other, which listens already; that one waits to be dialed. Which is which follows from the
// ports.
TEST_F(GlooMeshTest, CloseEndsConnecting) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    const Meshes pair = MakeGlooMeshes("localhost", {0, 1}, 2);
    const std::vector<std::string> endpoints = {pair[0]->Endpoint(), pair[1]->Endpoint()};
    auto connects = std::async(std::launch::async, [&] { return pair[0]->Connect(endpoints); });
    if (connects.wait_for(std::chrono::milliseconds(200)) == std::future_status::ready) {
      connects.get();
      continue;
    }
    pair[0]->Close();
    // Less than what it waits for by itself.
    ASSERT_EQ(connects.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_THAT(MessageOf<UnavailableError>([&] { connects.get(); }), HasSubstr("could not connect to rank 1"));
    return;
  }
  FAIL() << "rank 0 dials every time";
}

TEST_F(GlooMeshTest, WhatIsNoEndpointOrNoAddressOfOursIsRefused) {
  const Meshes fresh = MakeGlooMeshes("127.0.0.1", {0}, 2);
  EXPECT_THAT(MessageOf<DataLossError>([&] {
                fresh[0]->Connect({"", "short"});
              }),
              AllOf(HasSubstr("rank 1"), HasSubstr("got 5")));
  for (const char* host : {"192.0.2.1", "no-such-host.invalid"}) {
    EXPECT_THAT(MessageOf<UnavailableError>([&] { MakeGlooMeshes(host, {0}, 2); }), HasSubstr(host));
  }
}

}  // namespace
}  // namespace cohort::collective
