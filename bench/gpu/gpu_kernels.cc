#include "bench/gpu/gpu_kernels.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/gpu/json_line.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/depthwise.cu.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::gpu_bench {
namespace {

using cuda::DepthwiseSizes;
using cuda::Driver;
using cuda::ElementType;

constexpr int kCard = 0;
constexpr int kRepeats = 10;

// Memory, a stream and an event of the first card. They live as long as the object.
class Card {
 public:
  explicit Card(Driver& driver)
      : driver_(driver),
        stream_(driver.MakeStream(kCard, "bench")),
        event_(driver.MakeEvent(kCard, cuda::EventUse::kOrder)) {}
  ~Card() {
    for (void* data : buffers_) driver_.Free(kCard, data);
    driver_.Destroy(kCard, event_);
    driver_.Destroy(kCard, stream_);
  }
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  Driver& driver() const { return driver_; }
  cuda::StreamHandle stream() const { return stream_; }
  // Returns memory whose bytes are 0.
  void* Allocate(size_t bytes) {
    void* data = driver_.Allocate(kCard, bytes);
    if (data == nullptr) throw ResourceExhaustedError(StrCat("[gpu_steps] the card has no ", bytes, " bytes left"));
    buffers_.push_back(data);
    driver_.FillAsync(data, 0, bytes, stream_);
    return data;
  }
  // Returns five times of one call of `enqueue`, in ms: the mean of kRepeats calls, until the card has done their work.
  std::vector<double> Times(const std::function<void()>& enqueue) {
    std::vector<double> times;
    for (int sample = -1; sample < 5; ++sample) {  // the first one is the warm-up
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kRepeats; ++i) enqueue();
      driver_.Record(event_, stream_);
      driver_.Synchronize(event_).ThrowIfError();
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
      if (sample >= 0) times.push_back(time.count() / kRepeats);
    }
    return times;
  }

 private:
  Driver& driver_;
  const cuda::StreamHandle stream_;
  const cuda::EventHandle event_;
  std::vector<void*> buffers_;
};

// Returns the bytes a second that a copy inside the card's memory reads and writes.
double MeasureCopy(Driver& driver) {
  constexpr size_t kBytes = size_t{1} << 30;
  Card card(driver);
  void* from = card.Allocate(kBytes);
  void* to = card.Allocate(kBytes);
  const std::vector<double> times =
      card.Times([&] { driver.CopyAsync(to, from, kBytes, Driver::Copy::kOnDevice, card.stream()); });
  const double bandwidth = 2.0 * static_cast<double>(kBytes) / (MedianOf(times) * 1e-3);
  JsonLine()
      .Text("peer", "Cohort")
      .Text("what", "copy on the card")
      .Times(times)
      .Number("gb_per_s", bandwidth / 1e9)
      .Print();
  return bandwidth;
}

void MeasureDepthwise(Driver& driver, const DepthwiseSizes& sizes, double bandwidth) {
  Card card(driver);
  const size_t bytes = static_cast<size_t>(sizes.batch * sizes.in[0] * sizes.in[1] * sizes.channels) * 2;
  void* x = card.Allocate(bytes);
  void* y = card.Allocate(bytes);
  void* filter = card.Allocate(static_cast<size_t>(sizes.taps() * sizes.channels) * 2);
  void* scratch = card.Allocate(cuda::DepthwiseFilterGradientBytes(sizes));
  const ElementType type = ElementType::kBfloat16;
  const std::vector<std::pair<const char*, std::function<void()>>> parts = {
      {"forward",
       [&] {
         cuda::LaunchDepthwise(driver, card.stream(), type, sizes, x, filter, nullptr, cuda::Activation::kNone, y);
       }},
      {"input gradient", [&] { cuda::LaunchDepthwiseInputGradient(driver, card.stream(), type, sizes, filter, y, x); }},
      {"filter gradient",
       [&] { cuda::LaunchDepthwiseFilterGradient(driver, card.stream(), type, sizes, x, y, filter, scratch); }}};
  const double least_ms = 2.0 * static_cast<double>(bytes) / bandwidth * 1e3;
  for (const auto& [part, enqueue] : parts) {
    const std::vector<double> times = card.Times(enqueue);
    JsonLine()
        .Text("peer", "Cohort")
        .Text("what", "depthwise")
        .Text("part", part)
        .Number("batch", static_cast<double>(sizes.batch))
        .Number("size", static_cast<double>(sizes.in[0]))
        .Number("channels", static_cast<double>(sizes.channels))
        .Times(times)
        .Number("of_copy_bandwidth", least_ms / MedianOf(times))
        .Print();
  }
}

}  // namespace

void MeasureKernels(int64_t batch) {
  std::string why;
  Driver* const driver = cuda::FindDriver(&why);
  if (driver == nullptr) throw FailedPreconditionError(StrCat("[gpu_steps] expected a card; got none: ", why));
  const double bandwidth = MeasureCopy(*driver);
  constexpr int64_t kImages[][2] = {{28, 128}, {14, 128}, {14, 256}, {7, 256}, {7, 512}};  // rows and columns, channels
  for (const auto& [size, channels] : kImages) {
    DepthwiseSizes sizes;
    sizes.batch = batch;
    sizes.channels = channels;
    for (int i = 0; i < 2; ++i) {
      sizes.in[i] = sizes.out[i] = size;
      sizes.filter[i] = 3;
      sizes.before[i] = 1;
    }
    MeasureDepthwise(*driver, sizes, bandwidth);
  }
}

int64_t FreeBytesOfCard() {
  Driver* const driver = cuda::FindDriver();
  return driver == nullptr ? 0 : static_cast<int64_t>(driver->FreeBytes(kCard));
}

}  // namespace cohort::gpu_bench
