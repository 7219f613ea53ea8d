// Readers against writers: whoever reads a variable sees a whole value (dense) or whole rows (by row). Meant
// for ThreadSanitizer as much as for its own assertions.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "cohort/backends/cpu/cpu_variable.h"
#include "cohort/device/testing/add_one.h"

namespace cohort {
namespace {

using testing::AddOne;

constexpr int kWriters = 2;
constexpr int kReaders = 2;
constexpr int kUpdates = 200;  // of each writer

// Whether all elements of each of `rows` equal parts are equal.
bool AllEqual(const Tensor& value, int64_t rows) {
  const int64_t columns = value.num_elements() / rows;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    if (value.data<float>()[i] != value.data<float>()[i / columns * columns]) return false;
  }
  return true;
}

// Runs `write` kUpdates times on each of kWriters threads, and `read` on kReaders threads until they are
// done, each reader at least once.
void Race(const std::function<void(int round)>& write, const std::function<void(int round)>& read) {
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> threads;
  threads.reserve(kWriters + kReaders);
  for (int i = 0; i < kWriters; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kUpdates; ++round) write(round);
      --writing;
    });
  }
  for (int i = 0; i < kReaders; ++i) {
    threads.emplace_back([&] {
      int round = 0;
      do {
        read(round++);
      } while (writing.load() > 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CpuVariableRaceTest, DenseReadsSeeWholeValues) {
  CpuVariable v("v", DType::kFloat32, Shape{1000});
  v.Assign(Tensor::Zeros(DType::kFloat32, Shape{1000}));
  std::atomic<int> torn{0};
  Race([&](int) { v.Update(AddOne); },
       [&](int) {
         const Tensor value = v.Read();
         for (int again = 0; again < 3; ++again) torn += !AllEqual(value, 1);  // nor does it change while it is held
       });
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(v.Read().data<float>()[999], kWriters * kUpdates);
  EXPECT_EQ(v.version(), 1 + kWriters * kUpdates);
}

TEST(CpuVariableRaceTest, VariablesUpdatedTogetherInAnyOrderDoNotDeadlock) {
  CpuVariable a("a", DType::kFloat32, Shape{100});
  CpuVariable b("b", DType::kFloat32, Shape{100});
  a.Assign(Tensor::Zeros(DType::kFloat32, Shape{100}));
  b.Assign(Tensor::Zeros(DType::kFloat32, Shape{100}));
  std::atomic<int> wrong{0};
  Race(
      [&](int round) {
        const std::vector<VariableResource*> order =
            round % 2 == 0 ? std::vector<VariableResource*>{&a, &b} : std::vector<VariableResource*>{&b, &a};
        VariableResource::UpdateTogether(order, [&](std::span<const Tensor> olds, std::span<Tensor> outs) {
          wrong += olds[0].data<float>()[0] != olds[1].data<float>()[0];
          AddOne(olds[0], outs[0]);
          AddOne(olds[1], outs[1]);
        });
      },
      [&](int round) { wrong += !AllEqual((round % 2 == 0 ? a : b).Read(), 1); });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(a.Read().data<float>()[0], kWriters * kUpdates);
  EXPECT_EQ(b.Read().data<float>()[99], kWriters * kUpdates);
}

TEST(CpuVariableRaceTest, RowsAreNeverTorn) {
  constexpr int64_t kRows = 130;
  constexpr int64_t kColumns = 600;
  CpuVariable v("v", DType::kFloat32, Shape{kRows, kColumns});
  CpuVariable slot("slot", DType::kFloat32, Shape{kRows, kColumns});
  v.Assign(Tensor::Zeros(DType::kFloat32, Shape{kRows, kColumns}));
  slot.Assign(Tensor::Zeros(DType::kFloat32, Shape{kRows, kColumns}));
  const Tensor indices = Tensor::Vector<int32_t>({0, 64, 128, 5, 5, 129, 1});
  std::atomic<int> torn{0};
  const auto add_one = [&](int64_t, std::span<void* const> rows) {
    for (void* row : rows) {
      for (int64_t i = 0; i < kColumns; ++i) static_cast<float*>(row)[i] += 1;
    }
    torn += *static_cast<float*>(rows[0]) != *static_cast<float*>(rows[1]);
  };
  CpuVariable* const of_v[] = {&slot};
  CpuVariable* const of_slot[] = {&v};
  Race(
      [&](int round) {
        if (round % 2 == 0) {
          v.UpdateRows(indices, of_v, add_one);
        } else {
          slot.UpdateRows(indices, of_slot, add_one);
        }
      },
      [&](int round) {
        CpuVariable& read = round % 2 == 0 ? v : slot;
        torn += !AllEqual(read.Gather(indices, HostAllocator()), indices.num_elements());
        torn += !AllEqual(read.Read(), kRows);
      });
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(v.Read().data<float>()[0], kWriters * kUpdates);
  EXPECT_EQ(slot.Read().data<float>()[5 * kColumns], 2 * kWriters * kUpdates);
}

TEST(CpuVariableRaceTest, SwitchingToRowsTearsNothing) {
  constexpr int64_t kRows = 70;
  constexpr int64_t kColumns = 16;
  for (int i = 0; i < 10; ++i) {
    CpuVariable v("v", DType::kFloat32, Shape{kRows, kColumns});
    v.Assign(Tensor::Zeros(DType::kFloat32, Shape{kRows, kColumns}));
    std::vector<int32_t> all(kRows);
    for (int32_t row = 0; row < kRows; ++row) all[static_cast<size_t>(row)] = row;
    const Tensor indices = Tensor::Vector<int32_t>(all);
    std::atomic<int> torn{0};
    const auto check = [&](const Tensor& value) {
      for (int again = 0; again < 2; ++again) torn += !AllEqual(value, kRows);
    };
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      for (int round = 0; round < 40; ++round) v.Update(AddOne);
    });
    threads.emplace_back([&] {
      for (int round = 0; round < 40; ++round) check(v.Read());
    });
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) check(v.Gather(indices, HostAllocator()));
      for (int round = 0; round < 20; ++round) {
        v.UpdateRows(indices, {}, [&](int64_t, std::span<void* const> rows) {
          for (int64_t c = 0; c < kColumns; ++c) static_cast<float*>(rows[0])[c] += 1;
        });
      }
    });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(torn, 0);
    EXPECT_EQ(v.Read().data<float>()[kRows * kColumns - 1], 60);
  }
}

TEST(CpuVariableRaceTest, AssignsAreSeenAsAWhole) {
  CpuVariable v("v", DType::kFloat32, Shape{500});
  v.Assign(Tensor::Zeros(DType::kFloat32, Shape{500}));
  std::atomic<int> torn{0};
  Race(
      [&](int round) {
        Tensor value(DType::kFloat32, Shape{500});
        for (int64_t i = 0; i < 500; ++i) value.data<float>()[i] = static_cast<float>(round);
        v.Assign(value);
        value.Reset();
        v.Update(AddOne);
      },
      [&](int) { torn += !AllEqual(v.Read(), 1); });
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace cohort
