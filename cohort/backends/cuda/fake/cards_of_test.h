// CardsOfTest: fake cards that belong to one test, so that it sees the first use of a card. For tests only.
#pragma once

#include "cohort/backends/cuda/fake/fake_blas.h"
#include "cohort/backends/cuda/fake/fake_dnn.h"
#include "cohort/backends/cuda/fake/fake_driver.h"

namespace cohort::cuda {

// Makes the process use a fake driver of its own, with its libraries, until End is called. Requires: RegisterFakeCuda
// was called, and no device is in use when the object is made and at End.
class CardsOfTest {
 public:
  explicit CardsOfTest(const FakeDriverOptions& options = {})
      : driver_(options), driver_before_(FindDriver()), blas_before_(FindBlas()), dnn_before_(FindDnn()) {
    InstallDriver(&driver_);
    InstallBlas(&blas_);
    InstallDnn(&dnn_);
  }
  // Makes the process use again what it used before.
  void End() {
    InstallDriver(driver_before_);
    InstallBlas(&blas_before_);
    InstallDnn(&dnn_before_);
  }
  FakeControl& control() { return driver_.control(); }
  FakeDriver& driver() { return driver_; }
  FakeBlas& blas() { return blas_; }
  FakeDnn& dnn() { return dnn_; }

 private:
  FakeDriver driver_;
  FakeBlas blas_{driver_};
  FakeDnn dnn_{driver_};
  Driver* const driver_before_;
  Blas& blas_before_;
  Dnn& dnn_before_;
};

}  // namespace cohort::cuda
