// OwnCardTest: the base of tests of recorded steps that do to a fake card and its libraries what other tests must not
// see. For tests only.
#pragma once

#include "cohort/backends/cuda/fake/cards_of_test.h"
#include "cohort/backends/cuda/testing/recording_fixture.h"

namespace cohort::cuda {

class OwnCardTest : public RecordingTest {
 protected:
  ~OwnCardTest() override { cards_.End(); }
  void SetUp() override { COHORT_NEEDS_FAKE("the test has cards of its own"); }
  static SessionConfig OneCard() {
    SessionConfig config = Config();
    config.device_count[CudaBackend::Get().type()] = 1;
    return config;
  }
  template <typename Work>
  static Status StatusOf(const Work& work) {
    try {
      work();
    } catch (...) {
      return Status::FromCurrentException();
    }
    return {};
  }
  CardsOfTest cards_;
};

}  // namespace cohort::cuda
