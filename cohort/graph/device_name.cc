// Parses, prints and combines names of devices. The Parser splits a text at '/', and reads each part into one field of
// a DeviceName.
#include "cohort/graph/device_name.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// The types, in upper case, that need no "device:" in front of them.
std::vector<std::string>& ShortTypes() {
  static auto* const types = new std::vector<std::string>{kHostDeviceType};
  return *types;
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsIdentifier(std::string_view text) {
  if (text.empty() || !IsLetter(text[0])) return false;
  for (const char c : text) {
    if (!IsLetter(c) && !IsDigit(c) && c != '_') return false;
  }
  return true;
}

std::string ToUpper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

bool IsShortType(std::string_view text) {
  const std::vector<std::string>& types = ShortTypes();
  return std::find(types.begin(), types.end(), ToUpper(text)) != types.end();
}

// Reads the parts of one device specification into a DeviceName.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  DeviceName Run() {
    size_t begin = 0;
    while (begin <= text_.size()) {
      const size_t end = std::min(text_.find('/', begin), text_.size());
      if (end > begin) ParsePart(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    return std::move(name_);
  }

 private:
  [[noreturn]] void Fail(std::string_view part, std::string_view why) const {
    throw InvalidArgumentError(StrCat("[graph] device name '", text_, "': part '", part, "' ", why,
                                      "; expected a form like /job:worker/replica:0/task:1/device:", kHostDeviceType,
                                      ":0 or /", kHostDeviceType, ":0"));
  }

  void ParsePart(std::string_view part) {
    const size_t colon = part.find(':');
    const std::string_view key = part.substr(0, colon);
    const bool has_value = colon != std::string_view::npos;
    const std::string_view value = has_value ? part.substr(colon + 1) : std::string_view();
    if (key == "job" && has_value) {
      SetJob(part, value);
    } else if (key == "replica" && has_value) {
      SetNumber(part, value, seen_replica_, name_.replica);
    } else if (key == "task" && has_value) {
      SetNumber(part, value, seen_task_, name_.task);
    } else if (key == "device" && has_value) {
      SetDevice(part, value);
    } else if (IsShortType(key)) {
      SetDevice(part, part);
    } else {
      Fail(part,
           StrCat("has an unknown attribute (known: job, replica, task, device, ", StrJoin(ShortTypes(), ", "), ")"));
    }
  }

  void SetJob(std::string_view part, std::string_view value) {
    Once(part, seen_job_);
    if (value == "*") return;
    if (!IsIdentifier(value)) Fail(part, "has a job name that is not a letter followed by letters, digits or '_'");
    name_.job = std::string(value);
  }

  void SetNumber(std::string_view part, std::string_view value, bool& seen, std::optional<int>& field) {
    Once(part, seen);
    field = Number(part, value);
  }

  void SetDevice(std::string_view part, std::string_view value) {
    Once(part, seen_device_);
    const size_t colon = value.find(':');
    const std::string_view type = value.substr(0, colon);
    if (type != "*") {
      if (!IsIdentifier(type)) Fail(part, "has a device type that is not a letter followed by letters, digits or '_'");
      name_.type = ToUpper(type);
    }
    if (colon != std::string_view::npos) name_.id = Number(part, value.substr(colon + 1));
  }

  void Once(std::string_view part, bool& seen) const {
    if (seen) Fail(part, "repeats a field that is already set");
    seen = true;
  }

  std::optional<int> Number(std::string_view part, std::string_view value) const {
    if (value == "*") return std::nullopt;
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (value.empty() || !IsDigit(value[0]) || error != std::errc() || end != value.data() + value.size()) {
      Fail(part, "needs a number from 0 to 2147483647 or '*'");
    }
    return number;
  }

  std::string_view text_;
  DeviceName name_;
  bool seen_job_ = false;
  bool seen_replica_ = false;
  bool seen_task_ = false;
  bool seen_device_ = false;
};

template <typename T>
bool FieldMatches(const std::optional<T>& wanted, const std::optional<T>& other) {
  return !wanted || wanted == other;
}

}  // namespace

void AddShortDeviceType(std::string_view type) {
  if (!IsShortType(type)) ShortTypes().push_back(ToUpper(type));
}

DeviceName DeviceName::Parse(std::string_view text) { return Parser(text).Run(); }

std::string DeviceName::ToString() const {
  std::string text;
  if (job) text += "/job:" + *job;
  if (replica) text += "/replica:" + std::to_string(*replica);
  if (task) text += "/task:" + std::to_string(*task);
  if (type || id) text += "/device:" + type.value_or("*") + ":" + (id ? std::to_string(*id) : "*");
  return text;
}

DeviceName DeviceName::OverriddenBy(const DeviceName& inner) const {
  DeviceName merged = inner;
  if (!merged.job) merged.job = job;
  if (!merged.replica) merged.replica = replica;
  if (!merged.task) merged.task = task;
  if (!merged.type) merged.type = type;
  if (!merged.id) merged.id = id;
  return merged;
}

bool DeviceName::Matches(const DeviceName& other) const {
  return FieldMatches(job, other.job) && FieldMatches(replica, other.replica) && FieldMatches(task, other.task) &&
         FieldMatches(type, other.type) && FieldMatches(id, other.id);
}

std::string MergeDevices(std::string_view outer, std::string_view inner) {
  return DeviceName::Parse(outer).OverriddenBy(DeviceName::Parse(inner)).ToString();
}

}  // namespace cohort
