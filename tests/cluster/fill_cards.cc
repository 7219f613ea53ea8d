// A program for gpu_programs_test: it says how much memory its GPUs may use, and fills them, with fake cards.
//
//   fill_cards LIMITS GPU:MEGABYTES...
//
// The first card gets a logical GPU for each of the LIMITS, which are megabytes with commas between them. If LIMITS is
// "all", the devices of the last card take all of its memory at once. Then the program makes one tensor after the
// other. It prints for each whether there was memory, with the error if not, and at the end how much of each card is
// free.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cohort/backends/cuda/driver.h"
#include "cohort/cohort.h"
#include "cohort/core/text/str_split.h"

namespace {

using namespace cohort;

constexpr int kMegabyte = 1 << 20;

int Number(const std::string& text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void Configure(const std::string& limits, const std::string& growth) {
  const config::PhysicalDevice card = config::ListPhysicalDevices("GPU")[0];
  std::vector<config::LogicalDeviceConfiguration> logical;
  for (const std::string& limit : StrSplit(limits, ',')) logical.push_back({.memory_limit = Number(limit)});
  config::SetLogicalDeviceConfiguration(card, logical);
  if (growth == "0") config::SetMemoryGrowth(card, false);
}

void Fill(const std::string& gpu, int megabytes) {
  Graph graph;
  const DeviceScope scope(graph, "/gpu:" + gpu);
  const Output size = ops::Placeholder(graph, DType::kInt32, Shape{2}, "size");
  const Output sum = ops::Sum(ops::Fill(size, ops::Const(graph, 1.0f), "filled"));
  Session session(graph);
  std::string result = "filled";
  try {
    session.Run({{size, Tensor::Vector<int32_t>({megabytes, kMegabyte / 4})}}, {sum});
  } catch (const ResourceExhaustedError& error) {
    result = error.what();
    result.resize(std::min(result.size(), result.find('\n')));  // the node stands behind it
  }
  std::printf("%d MB of GPU:%s: %s\n", megabytes, gpu.c_str(), result.c_str());
  std::printf("%zu MB are left\n", cuda::FindDriver()->FreeBytes(0) / kMegabyte);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 2) Configure(argv[1], argv[2]);
  for (int i = 3; i < argc; ++i) {
    const std::vector<std::string> words = StrSplit(argv[i], ':');
    Fill(words.at(0), Number(words.at(1)));
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "fill_cards: %s\n", error.what());
  return 1;
}
