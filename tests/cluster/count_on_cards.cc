// A program for gpu_programs_test: it counts to 40 in a variable that stands where nodes without a device go, saves the
// variable at each tenth step, and goes on from the last checkpoint in its folder.
//
//   count_on_cards FOLDER [BEFORE LATER]
//
// It sets CUDA_VISIBLE_DEVICES to BEFORE before it uses devices for the first time, and then to LATER. It prints how
// many GPUs it has after each. What it adds is a product. With fake cards it prints at the end which algorithm of the
// library was used last, and whether steps were recorded.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "cohort/backends/cuda/fake/fake_blas.h"
#include "cohort/backends/cuda/fake/fake_driver.h"
#include "cohort/cohort.h"

namespace {

using namespace cohort;

void Count(const std::string& folder) {
  constexpr float kLast = 40;
  constexpr int kBetweenSaves = 10;
  Graph graph;
  const ops::Variable count(graph, Tensor::Scalar(0.0f), {.name = "count"});
  const ops::Variable one(graph, Tensor::FromValues<float>({1}, Shape{1, 1}), {.name = "one"});
  Node* const add = count.AssignAdd(ops::Reshape(ops::MatMul(one.value(), one.value()), {}));
  Node* const init = ops::GlobalVariablesInitializer(graph);
  Saver saver(graph);
  Session session(graph);
  session.Run(init);
  saver.RestoreLatest(session, folder);
  const auto value = [&] { return session.Run(count.value()).scalar<float>(); };
  std::printf("begins at %g\n", static_cast<double>(value()));
  while (value() < kLast) {
    for (int i = 0; i < kBetweenSaves; ++i) session.Run(add);
    saver.Save(session, folder + "/count", static_cast<int64_t>(value()));
  }
  std::printf("counted to %g\n", static_cast<double>(value()));
  if (auto* driver = static_cast<cuda::FakeDriver*>(cuda::FindDriver())) {
    const uint64_t algorithm = static_cast<cuda::FakeBlas&>(cuda::FindBlas()).algorithms().last();
    std::printf("algorithm %d, %s\n", static_cast<int>(algorithm),
                driver->control().graph_launches() > 0 ? "recorded" : "launched");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  for (int i = 2; i < argc; ++i) {
    setenv("CUDA_VISIBLE_DEVICES", argv[i], 1);
    std::printf("'%s': %zu GPUs\n", argv[i], config::ListPhysicalDevices("GPU").size());
  }
  if (argc > 1) Count(argv[1]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "count_on_cards: %s\n", error.what());
  return 1;
}
