#include <algorithm>
#include <set>
#include <vector>

#include "cohort/cluster/json_text_internal.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cluster_internal {
namespace {

using nlohmann::json;

constexpr size_t kExcerptWidth = 72;  // characters of the faulty line that are shown
// TF_CONFIG has 3 levels. The JSON library prints values in values by recursion, so many levels would use up the stack.
constexpr int kDeepest = 32;

// Lines and columns count from 1, columns in bytes.
struct Place {
  size_t line = 1, column = 1;
  std::string excerpt;  // two lines: the text around the mistake, and a mark below it
};

Place FindPlace(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const size_t newline = before.rfind('\n');
  const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  const size_t end = std::min(text.find('\n', offset), text.size());
  Place place;
  place.line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  place.column = 1 + offset - start;
  const size_t from = offset - start > kExcerptWidth / 2 ? offset - kExcerptWidth / 2 : start;
  std::string shown(text.substr(from, std::min(end - from, kExcerptWidth)));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  place.excerpt = StrCat("    ", shown, "\n    ", std::string(offset - from, ' '), "^");
  return place;
}

// Returns nlohmann's message without its exception id and position: "unexpected end of input; expected '}'".
std::string Reason(const json::parse_error& error) {
  std::string what = error.what();
  const size_t dash = what.find(" - ");
  if (dash != std::string::npos) return what.substr(dash + 3);
  const size_t colon = what.rfind(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

// Records keys that occur twice in an object. nlohmann would keep the last one and say nothing. Throws if values are
// nested too deeply.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(std::string_view source) : source_(source) {}

  bool See(int depth, json::parse_event_t event, const json& value) {
    if (depth > kDeepest) {
      throw InvalidArgumentError(
          StrCat("[", source_, "] expected JSON of at most ", kDeepest, " lists and objects in one another; got more"));
    }
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string key = value.get<std::string>();
      if (!keys_.back().insert(key).second && found_.empty()) found_ = key;
    }
    return true;
  }
  const std::string& found() const { return found_; }

 private:
  const std::string_view source_;
  std::vector<std::set<std::string>> keys_;
  std::string found_;
};

}  // namespace

json ParseJson(std::string_view text, std::string_view source) {
  DuplicateKeys duplicates(source);
  json value;
  try {
    value = json::parse(text,
                        [&](int depth, json::parse_event_t event, json& v) { return duplicates.See(depth, event, v); });
  } catch (const json::parse_error& error) {
    // `byte` counts from 1. It is the position of the last character that was read.
    const Place place = FindPlace(text, error.byte == 0 ? 0 : error.byte - 1);
    const bool unquoted = text.find('"') == std::string_view::npos;  // a Python dict, or quotes lost to a shell
    throw InvalidArgumentError(StrCat("[", source, "] expected JSON; got a syntax error at line ", place.line,
                                      ", column ", place.column, ": ", Reason(error), "\n", place.excerpt,
                                      unquoted ? "\n    JSON's keys and strings stand in double quotes" : ""));
  } catch (const json::exception& error) {  // a number that no double can hold
    throw InvalidArgumentError(StrCat("[", source, "] expected JSON; got what cannot be read: ", error.what()));
  }
  if (!duplicates.found().empty()) {
    throw InvalidArgumentError(
        StrCat("[", source, "] expected each key once in an object; got \"", duplicates.found(), "\" twice"));
  }
  return value;
}

std::string JsonKind(const json& value) {
  switch (value.type()) {
    case json::value_t::null: return "null";
    case json::value_t::object: return "an object";
    case json::value_t::array: return "a list";
    case json::value_t::string: return "a string";
    case json::value_t::boolean: return "a boolean";
    default: return "a number";
  }
}

std::string JsonExcerpt(const json& value) {
  constexpr size_t kLimit = 60;
  std::string text = value.dump(-1, ' ', true);
  return text.size() <= kLimit ? text : text.substr(0, kLimit - 3) + "...";
}

}  // namespace cohort::cluster_internal
