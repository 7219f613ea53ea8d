#include "cohort/checkpoint/tensor_slice.h"

#include <gtest/gtest.h>

#include <functional>

#include "cohort/core/error.h"

namespace cohort {
namespace {

TEST(TensorSliceTest, ParsesWhatItPrints) {
  for (const char* text : {"5,5:0,3", "-", "-:-", "0,0:-:7,1", ""}) {
    EXPECT_EQ(TensorSlice::Parse(text).ToString(), text);
  }
  for (const char* text : {"5", "5,", ",5", "a,1", "-1,2", "1,2:", "1,2 ", "1,2,3", "99999999999999999999,1"}) {
    EXPECT_THROW(TensorSlice::Parse(text), InvalidArgumentError) << text;
  }
}

TEST(TensorSliceTest, ShapeAndSlice) {
  const auto [shape, slice] = ParseShapeAndSlice("10 3 5,5:0,3");
  EXPECT_EQ(shape, (Shape{10, 3}));
  EXPECT_EQ(slice, TensorSlice::Rows(shape, 5, 5));
  EXPECT_EQ(slice.ShapeIn(shape), (Shape{5, 3}));
  EXPECT_FALSE(slice.IsWholeOf(shape));
  EXPECT_TRUE(ParseShapeAndSlice("10 3 -:0,3").second.IsWholeOf(shape));
  EXPECT_FALSE(ParseShapeAndSlice("").first.has_rank());
  EXPECT_THROW(ParseShapeAndSlice("10 3 6,5:0,3"), InvalidArgumentError);
  EXPECT_THROW(ParseShapeAndSlice("10 3 0,5"), InvalidArgumentError);
}

TEST(TensorSliceTest, KeyOfKnownParts) {
  const Shape full{10, 3};
  EXPECT_EQ(SliceKey("v", TensorSlice::Rows(full, 5, 5)), std::string("\x00v\x00\x01\x01\x02\x85\x85\x80\x83", 10));
  EXPECT_EQ(SliceKey("v", TensorSlice::Parse("5,5:-")), std::string("\x00v\x00\x01\x01\x02\x85\x85\x80\x7f", 10));
}

// Every element of a box, by its coordinates, in row-major order.
void ForEach(const TensorSlice& box, const std::function<void(const std::vector<int64_t>&)>& visit) {
  std::vector<int64_t> at;
  std::function<void(size_t)> walk = [&](size_t dim) {
    if (dim == box.extents.size()) return visit(at);
    for (int64_t i = 0; i < box.extents[dim].length; ++i) {
      at.push_back(box.extents[dim].start + i);
      walk(dim + 1);
      at.pop_back();
    }
  };
  walk(0);
}

// Value of the full tensor at given coordinates.
int64_t ValueAt(const std::vector<int64_t>& at) {
  int64_t value = 0;
  for (const int64_t i : at) value = value * 10 + i;
  return value;
}

std::vector<TensorSlice> AllBoxes(const Shape& full) {
  std::vector<TensorSlice> boxes = {{}};
  for (const int64_t dim : full.dims()) {
    std::vector<TensorSlice> longer;
    for (const TensorSlice& box : boxes) {
      for (int64_t start = 0; start <= dim; ++start) {
        for (int64_t length = 0; start + length <= dim; ++length) {
          longer.push_back(box);
          longer.back().extents.push_back({start, length});
        }
      }
    }
    boxes = std::move(longer);
  }
  return boxes;
}

TEST(SliceOverlapTest, CopiesExactlyTheSharedElementsOfEveryPairOfBoxes) {
  for (const Shape& full : {Shape(), Shape{4}, Shape{3, 3}, Shape{2, 2, 2}}) {
    const std::vector<TensorSlice> boxes = AllBoxes(full);
    for (const TensorSlice& from : boxes) {
      std::vector<int64_t> source;
      ForEach(from, [&](const auto& at) { source.push_back(ValueAt(at)); });
      for (const TensorSlice& to : boxes) {
        std::vector<int64_t> expected;
        int64_t shared = 0;
        ForEach(to, [&](const auto& at) {
          bool inside = true;
          for (size_t d = 0; d < at.size(); ++d) {
            inside = inside && at[d] >= from.extents[d].start && at[d] < from.extents[d].start + from.extents[d].length;
          }
          shared += inside;
          expected.push_back(inside ? ValueAt(at) : -1);
        });
        std::vector<int64_t> actual(expected.size(), -1);
        SliceOverlap overlap(from, to);
        EXPECT_EQ(overlap.size(), shared);
        SliceOverlap::Run run;
        int64_t last_from = -1;
        while (overlap.Next(&run)) {
          EXPECT_GT(run.from, last_from);
          last_from = run.from + run.length - 1;
          for (int64_t i = 0; i < run.length; ++i) {
            actual.at(static_cast<size_t>(run.to + i)) = source.at(static_cast<size_t>(run.from + i));
          }
        }
        ASSERT_EQ(actual, expected) << from.ToString() << " -> " << to.ToString();
      }
    }
  }
}

TEST(SliceOverlapTest, RowsAreOneRun) {
  const Shape full{10, 3, 4};
  SliceOverlap overlap(TensorSlice::Rows(full, 2, 6), TensorSlice::Whole(3).ResolvedIn(full));
  SliceOverlap::Run run;
  ASSERT_TRUE(overlap.Next(&run));
  EXPECT_EQ(run.to, 24);
  EXPECT_EQ(run.length, 72);
  EXPECT_FALSE(overlap.Next(&run));
}

}  // namespace
}  // namespace cohort
