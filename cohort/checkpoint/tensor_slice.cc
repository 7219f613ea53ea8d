// TensorSlice and SliceOverlap. Slices are parsed from text and resolved in a full shape. SliceOverlap merges the
// innermost dimensions that both boxes contain as a whole into one run, and steps through the others.
#include "cohort/checkpoint/tensor_slice.h"

#include <algorithm>
#include <charconv>

#include "cohort/checkpoint/ordered_code.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

int64_t ParseNumber(std::string_view digits, std::string_view whole_text) {
  int64_t value = -1;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size() || value < 0) {
    throw InvalidArgumentError(
        StrCat("[checkpoint] a slice is written as start,length of each dimension ('-' for a "
               "whole one) with ':' between, such as 0,3:-; got \"",
               whole_text, "\""));
  }
  return value;
}

// Cuts `text` at the first `separator`; what follows it stays in `text`.
std::string_view TakeUntil(char separator, std::string_view* text) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view piece = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return piece;
}

}  // namespace

TensorSlice TensorSlice::Rows(const Shape& full, int64_t start, int64_t length) {
  TensorSlice slice = Whole(full.rank()).ResolvedIn(full);
  if (slice.extents.empty()) throw InvalidArgumentError("[checkpoint] a scalar has no rows to slice");
  slice.extents[0] = {start, length};
  return slice.ResolvedIn(full);
}

TensorSlice TensorSlice::Parse(std::string_view text) {
  TensorSlice slice;
  std::string_view left = text;
  for (bool more = !text.empty(); more;) {
    more = left.find(':') != std::string_view::npos;
    std::string_view piece = TakeUntil(':', &left);
    if (piece == "-") {
      slice.extents.push_back({});
      continue;
    }
    const std::string_view start = TakeUntil(',', &piece);
    slice.extents.push_back({ParseNumber(start, text), ParseNumber(piece, text)});
  }
  return slice;
}

std::string TensorSlice::ToString() const {
  std::string text;
  for (const Extent& extent : extents) {
    if (!text.empty()) text += ':';
    text += extent.length == kWhole ? "-" : StrCat(extent.start, ",", extent.length);
  }
  return text;
}

TensorSlice TensorSlice::ResolvedIn(const Shape& full) const {
  bool fits = full.rank() == static_cast<int>(extents.size());
  TensorSlice resolved = *this;
  for (size_t i = 0; fits && i < extents.size(); ++i) {
    const int64_t dim = full.dim(static_cast<int>(i));
    Extent& extent = resolved.extents[i];
    if (extent.length == kWhole && extent.start == 0) extent.length = dim;
    fits = extent.start >= 0 && extent.length >= 0 && extent.start <= dim && extent.length <= dim - extent.start;
  }
  if (!fits) {
    throw InvalidArgumentError(
        StrCat("[checkpoint] the slice ", ToString(), " does not lie in a tensor of shape ", full));
  }
  return resolved;
}

Shape TensorSlice::ShapeIn(const Shape& full) const {
  Shape shape;
  for (const Extent& extent : ResolvedIn(full).extents) shape.AddDim(extent.length);
  return shape;
}

std::pair<Shape, TensorSlice> ParseShapeAndSlice(std::string_view text) {
  if (text.empty()) return {Shape::UnknownRank(), {}};
  Shape shape;
  std::string_view left = text;
  while (left.find(' ') != std::string_view::npos) shape.AddDim(ParseNumber(TakeUntil(' ', &left), text));
  TensorSlice slice = TensorSlice::Parse(left);
  slice.ResolvedIn(shape);
  return {shape, slice};
}

std::string ShapeAndSlice(const Shape& full, const TensorSlice& slice) {
  std::string text;
  for (const int64_t dim : full.dims()) text += StrCat(dim, " ");
  return text + slice.ToString();
}

std::string SliceKey(std::string_view name, const TensorSlice& slice) {
  std::string key;
  ordered_code::AppendUnsigned(0, &key);
  ordered_code::AppendString(name, &key);
  ordered_code::AppendUnsigned(slice.extents.size(), &key);
  for (const TensorSlice::Extent& extent : slice.extents) {
    ordered_code::AppendSigned(extent.start, &key);
    ordered_code::AppendSigned(extent.length, &key);
  }
  return key;
}

SliceOverlap::SliceOverlap(const TensorSlice& from, const TensorSlice& to) {
  int64_t from_stride = 1;
  int64_t to_stride = 1;
  bool contiguous = true;  // all dimensions further right are whole in both boxes
  for (size_t i = from.extents.size(); i-- > 0;) {
    const auto& a = from.extents[i];
    const auto& b = to.extents[i];
    const int64_t start = std::max(a.start, b.start);
    const int64_t count = std::max<int64_t>(0, std::min(a.start + a.length, b.start + b.length) - start);
    from_ += (start - a.start) * from_stride;
    to_ += (start - b.start) * to_stride;
    size_ *= count;
    if (contiguous) {
      run_ *= count;
      contiguous = count == a.length && count == b.length;
    } else if (count != 1) {
      outer_.push_back({count, from_stride, to_stride});
    }
    from_stride *= a.length;
    to_stride *= b.length;
  }
  done_ = size_ == 0;
}

bool SliceOverlap::Next(Run* run) {
  if (done_) return false;
  *run = {from_, to_, run_};
  done_ = true;
  for (Dim& dim : outer_) {  // innermost first
    from_ += dim.from_stride;
    to_ += dim.to_stride;
    if (++dim.index < dim.count) {
      done_ = false;
      break;
    }
    from_ -= dim.count * dim.from_stride;
    to_ -= dim.count * dim.to_stride;
    dim.index = 0;
  }
  return true;
}

}  // namespace cohort
