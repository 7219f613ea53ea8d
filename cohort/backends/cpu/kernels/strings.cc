// Kernels of ops/strings.h that make one string, or one number, of each string.
#include "cohort/ops/strings.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/backends/cpu/kernels/broadcast.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/utf8.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/ascii_spaces.h"
#include "cohort/core/text/number_text.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

// Sets element i of the output to fn(element i of the input).
template <typename Result, typename Fn>
void ForEachString(KernelContext& ctx, const Fn& fn) {
  const Tensor& x = ctx.input(0);
  Tensor& out = ctx.AllocateOutput(0, x.shape());
  const std::string* from = x.data<std::string>();
  Result* to = out.data<Result>();
  for (int64_t i = 0; i < x.num_elements(); ++i) to[i] = fn(from[i]);
}

void StringLower(KernelContext& ctx) {
  ForEachString<std::string>(ctx, [](const std::string& text) { return absl::AsciiStrToLower(text); });
}
void StringUpper(KernelContext& ctx) {
  ForEachString<std::string>(ctx, [](const std::string& text) { return absl::AsciiStrToUpper(text); });
}
void StringStrip(KernelContext& ctx) {
  ForEachString<std::string>(ctx, [](const std::string& text) { return std::string(WithoutSpacesAround(text)); });
}

bool CountsCharacters(const Node& node) { return node.attr<std::string>("unit") == "UTF8_CHAR"; }

void StringLength(KernelContext& ctx) {
  const bool characters = CountsCharacters(ctx.node());
  ForEachString<int32_t>(ctx, [&](const std::string& text) {
    if (!characters) return static_cast<int32_t>(text.size());
    return static_cast<int32_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return !cpu::ContinuesCharacter(c); }));
  });
}

void StringJoin(KernelContext& ctx) {
  const std::string& separator = ctx.node().attr<std::string>("separator");
  Shape shape;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Shape& other = ctx.input(i).shape();
    if (other.rank() == 0 || other == shape) continue;
    if (shape.rank() > 0) {
      throw InvalidArgumentError(
          StrCat("expected inputs of one shape, or scalars; got shapes ", shape, " and ", other));
    }
    shape = other;
  }
  Tensor& out = ctx.AllocateOutput(0, shape);
  std::string* to = out.data<std::string>();
  for (int64_t k = 0; k < out.num_elements(); ++k) {
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Tensor& x = ctx.input(i);
      if (i > 0) to[k] += separator;
      to[k] += x.data<std::string>()[x.shape().rank() == 0 ? 0 : k];
    }
  }
}

// Moves `at` forward by `count` characters, at most to the end. Returns how many there were.
int64_t SkipCharacters(std::string_view text, int64_t count, size_t* at) {
  int64_t skipped = 0;
  for (; skipped < count && *at < text.size(); ++skipped) {
    do {
      ++*at;
    } while (*at < text.size() && cpu::ContinuesCharacter(text[*at]));
  }
  return skipped;
}

std::string_view PartOfCharacters(std::string_view text, int64_t pos, int64_t len, bool* found) {
  size_t begin = 0;
  if (pos < 0) pos += SkipCharacters(text, std::numeric_limits<int64_t>::max(), &begin);
  begin = 0;
  *found = pos >= 0 && SkipCharacters(text, pos, &begin) == pos;
  if (!*found) return {};
  size_t end = begin;
  SkipCharacters(text, len, &end);
  return text.substr(begin, end - begin);
}

std::string_view PartOfBytes(std::string_view text, int64_t pos, int64_t len, bool* found) {
  const auto size = static_cast<int64_t>(text.size());
  if (pos < 0) pos += size;
  *found = pos >= 0 && pos <= size;
  if (!*found) return {};
  return text.substr(static_cast<size_t>(pos), len < 0 ? text.npos : static_cast<size_t>(len));
}

int64_t IntegerAt(const Tensor& values, int64_t i) {
  return values.dtype() == DType::kInt32 ? values.data<int32_t>()[i] : values.data<int64_t>()[i];
}

void Substr(KernelContext& ctx) {
  const Tensor &x = ctx.input(0), &pos = ctx.input(1), &len = ctx.input(2);
  if (!(pos.shape() == len.shape())) {
    throw InvalidArgumentError(StrCat("expected pos and len of one shape; got ", pos.shape(), " and ", len.shape()));
  }
  const bool characters = CountsCharacters(ctx.node());
  const Shape shape = BroadcastShapes(x.shape(), pos.shape());
  const std::string* from = x.data<std::string>();
  std::string* to = ctx.AllocateOutput(0, shape).data<std::string>();
  const auto cut = [&](int64_t i, int64_t text, int64_t place) {
    const int64_t at = IntegerAt(pos, place), count = IntegerAt(len, place);
    bool found = false;
    to[i] = characters ? PartOfCharacters(from[text], at, count, &found) : PartOfBytes(from[text], at, count, &found);
    if (found) return;
    throw InvalidArgumentError(
        StrCat("expected a pos inside of the string; got ", at, " for \"", from[text], "\", element ", text));
  };
  if (shape.num_elements() == 0) return;
  const auto plan = PlanBroadcast<2>(shape, {&x.shape(), &pos.shape()});
  cpu::WalkBroadcast<2>(plan, 0, plan.outer(), [&](int64_t first, const std::array<int64_t, 2>& offsets) {
    for (int64_t i = 0; i < plan.inner(); ++i) {
      cut(first + i, offsets[0] + (plan.inner_repeats(0) ? 0 : i), offsets[1] + (plan.inner_repeats(1) ? 0 : i));
    }
  });
}

template <typename T>
void ParseAll(KernelContext& ctx) {
  ForEachString<T>(ctx, [](const std::string& text) {
    if (const std::optional<T> number = ParseNumber<T>(text)) return *number;
    throw InvalidArgumentError(StrCat("expected a number of the dtype ", kDTypeOf<T>, "; got \"", text, "\""));
  });
}

void StringToNumber(KernelContext& ctx) {
  switch (ctx.node().output_dtype(0)) {
    case DType::kFloat32: return ParseAll<float>(ctx);
    case DType::kFloat64: return ParseAll<double>(ctx);
    case DType::kInt32: return ParseAll<int32_t>(ctx);
    default: return ParseAll<int64_t>(ctx);
  }
}

}  // namespace

void RegisterStringKernels(KernelRegistry& registry) {
  registry.RegisterFn("StringLower", "CPU", StringLower);
  registry.RegisterFn("StringUpper", "CPU", StringUpper);
  registry.RegisterFn("StringStrip", "CPU", StringStrip);
  registry.RegisterFn("StringLength", "CPU", StringLength);
  registry.RegisterFn("StringJoin", "CPU", StringJoin);
  registry.RegisterFn("Substr", "CPU", Substr);
  registry.RegisterFn("StringToNumber", "CPU", StringToNumber);
}

}  // namespace cohort
