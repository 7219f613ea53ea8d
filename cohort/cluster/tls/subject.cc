#include "cohort/cluster/tls/subject.h"

#include <algorithm>
#include <cctype>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr std::string_view kScheme = "cohort://";
constexpr std::string_view kClientJob = "client";
constexpr size_t kLongestId = 64;

bool IsJobId(std::string_view id) {
  return !id.empty() && id.size() <= kLongestId && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Removes `prefix` from the front. Returns false if the text does not begin with it.
bool Take(std::string_view prefix, std::string_view* text) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

bool IsTask(std::string_view text) {
  if (text == kClientSubject) return true;
  if (!Take("/job:", &text)) return false;
  const size_t end = text.find('/');
  if (end == 0 || end == std::string_view::npos) return false;
  text.remove_prefix(end);
  return Take("/replica:0/task:", &text) && IsNumber(text);
}

}  // namespace

std::string CertificateSubject::Uri() const { return StrCat(kScheme, job_id, task); }

std::optional<CertificateSubject> ParseSubject(std::string_view uri) {
  if (!Take(kScheme, &uri)) return std::nullopt;
  const std::string_view id = uri.substr(0, uri.find('/'));
  const std::string_view task = uri.substr(id.size());
  if (!IsJobId(id) || (!task.empty() && !IsTask(task))) return std::nullopt;
  return CertificateSubject{std::string(id), std::string(task)};
}

bool MayBe(std::string_view subject, std::string_view task) {
  if (subject.empty()) return false;
  return subject == task || (task.starts_with(kClientSubject) && task.substr(kClientSubject.size()).starts_with('/'));
}

std::string SubjectOf(std::string_view job, int index) {
  if (job == kClientJob) return std::string(kClientSubject);
  return StrCat("/job:", job, "/replica:0/task:", index);
}

std::string FileStem(std::string_view job, int index) {
  return job == kClientJob ? std::string(job) : StrCat(job, "-", index);
}

}  // namespace cohort
