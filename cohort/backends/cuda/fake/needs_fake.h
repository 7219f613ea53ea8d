// Which tests run on the machine's cards (./dev test gpu), and how a test says that it needs the fakes.
#pragma once

#include <cstdlib>
#include <string>

namespace cohort::cuda {

// Returns whether the environment variable COHORT_TEST_CARD is "1": tests then use the machine's cards.
inline bool TestsRunOnCard() {
  const char* on_card = std::getenv("COHORT_TEST_CARD");
  return on_card != nullptr && std::string(on_card) == "1";
}

}  // namespace cohort::cuda

// The first statement of a test, or of SetUp, that needs the fake driver or fake libraries: on a card the test is
// skipped with the reason. (After a skip in SetUpTestSuite, GoogleTest 1.12 runs the tests nevertheless.)
#define COHORT_NEEDS_FAKE(why) \
  if (::cohort::cuda::TestsRunOnCard()) GTEST_SKIP() << "this test needs the fakes: " << (why)
