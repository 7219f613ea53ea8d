// The values alone, without graph or session: all that a quick build of cohort::core has.
#include <exception>
#include <iostream>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"

int main() {
  const cohort::Tensor tensor = cohort::Tensor::FromValues(std::vector<float>{1, 2, 3, 4}, cohort::Shape{2, 2});
  try {
    static_cast<void>(tensor.Reshaped(cohort::Shape{3}));
  } catch (const cohort::InvalidArgumentError&) {
    std::cout << tensor.ToString() << "\n";
    return 0;
  }
  std::cerr << "a wrong shape was accepted\n";
  return 1;
}
