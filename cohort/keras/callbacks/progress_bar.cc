// ProgressBar and ProgressBarLogger. A drawing consists of the counter, the bar, the timing and the metrics. On a
// terminal each drawing overwrites the last one; elsewhere only the last one of an epoch is printed. Due limits how
// often a drawing is made.
#include "cohort/keras/callbacks/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "cohort/core/str_cat.h"

namespace cohort::keras {
namespace {

constexpr int64_t kBarWidth = 30;

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename... Args>
std::string Format(const char* format, Args... args) {
  char text[64];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

// Returns how many columns a terminal needs for `text`: one for each UTF-8 character.
size_t Columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Keeps the order of the logs, but puts those of the validation after the others and the learning rate last.
Logs Ordered(Logs logs) {
  const auto rank = [](const std::string& name) {
    return name == "learning_rate" ? 2 : name.starts_with("val_") ? 1 : 0;
  };
  std::stable_sort(logs.begin(), logs.end(),
                   [&](const auto& a, const auto& b) { return rank(a.first) < rank(b.first); });
  return logs;
}

std::string Metrics(const Logs& logs) {
  std::string text;
  for (const auto& [name, value] : Ordered(logs)) text += StrCat(" - ", name, ": ", FormatMetricValue(value));
  return text;
}

// Returns for example " 12/345": the first number is as wide as the second.
std::string Counter(int64_t current, int64_t target) {
  const auto width = static_cast<int>(std::to_string(target).size());
  return Format("%*lld/%lld", width, static_cast<long long>(current), static_cast<long long>(target));
}

bool IsTerminal() {
  if (const char* choice = std::getenv("COHORT_PROGRESS")) {
    if (std::string_view(choice) == "bar") return true;
    if (std::string_view(choice) == "plain") return false;
  }
  return isatty(STDOUT_FILENO) == 1;
}

}  // namespace

std::string FormatDuration(double seconds) {
  const auto whole = static_cast<long long>(std::max(seconds, 0.0));
  if (seconds > 3600) return Format("%lld:%02lld:%02lld", whole / 3600, whole % 3600 / 60, whole % 60);
  if (seconds > 60) return Format("%lld:%02lld", whole / 60, whole % 60);
  return Format("%llds", whole);
}

std::string FormatTimePerUnit(double seconds, const std::string& unit) {
  if (seconds >= 1 || seconds == 0) return Format("%.0fs/", seconds) + unit;
  if (seconds >= 1e-3) return Format("%.0fms/", seconds * 1e3) + unit;
  return Format("%.0fus/", seconds * 1e6) + unit;
}

std::string FormatMetricValue(double value) {
  if (std::isnan(value)) return "nan";
  return Format(std::abs(value) > 1e-3 ? "%.4f" : "%.4e", value);
}

ProgressBar::ProgressBar(std::ostream& out, Options options, Clock now)
    : out_(out), options_(std::move(options)), now_(now ? std::move(now) : SteadySeconds), start_(now_()) {}

bool ProgressBar::Due(int64_t current, bool finalize) const {
  if (options_.verbose == 0) return false;
  if (finalize) return true;
  if (options_.verbose != 1 || !options_.terminal) return false;
  return !drawn_ || now_() - last_drawn_ >= options_.interval_secs;
}

double ProgressBar::SecondsPerStep(int64_t current, double now) const {
  if (current <= 0) return 0;
  if (has_first_ && current > 1) return (now - after_first_) / static_cast<double>(current - 1);
  return (now - start_) / static_cast<double>(current);
}

std::string ProgressBar::Bar(int64_t current) const {
  if (options_.target <= 0) return Format("%7lld/Unknown", static_cast<long long>(current));
  const auto columns = static_cast<size_t>(kBarWidth * std::min(current, options_.target) / options_.target);
  std::string bar(kBarWidth, '.');
  std::fill_n(bar.begin(), columns, '=');
  if (columns > 0 && current < options_.target) bar[columns - 1] = '>';
  return StrCat(Counter(current, options_.target), " [", bar, "]");
}

std::string ProgressBar::Timing(int64_t current, double now, bool last) const {
  const double per_step = SecondsPerStep(current, now);
  if (!last && options_.target > 0) {
    return StrCat(" - ETA: ", FormatDuration(per_step * static_cast<double>(options_.target - current)));
  }
  return StrCat(" - ", Format("%.0fs", now - start_), " ", FormatTimePerUnit(per_step, options_.unit));
}

void ProgressBar::Update(int64_t current, const Logs& logs, bool finalize) {
  const double now = now_();
  const bool due = Due(current, finalize);
  if (due && options_.verbose == 1 && options_.terminal) {
    std::string line = StrCat(Bar(current), Timing(current, now, finalize), Metrics(logs));
    const size_t width = Columns(line);
    if (width < width_) line.append(width_ - width, ' ');
    width_ = width;
    out_ << '\r' << line << (finalize ? "\n" : "") << std::flush;
  } else if (due) {
    const std::string counter = options_.target > 0 ? Counter(current, options_.target) : std::to_string(current);
    out_ << StrCat(counter, " - ", Format("%.0fs", now - start_), " - ",
                   FormatTimePerUnit(SecondsPerStep(current, now), options_.unit), Metrics(logs), "\n")
         << std::flush;
  }
  if (current == 1 && !has_first_) {
    has_first_ = true;
    after_first_ = now;
  }
  if (due) {
    drawn_ = true;
    last_drawn_ = now;
  }
}

ProgressBarLogger::ProgressBarLogger() : out_(&std::cout), terminal_(IsTerminal()) {}

void ProgressBarLogger::Start() {
  ProgressBar::Options options;
  options.target = params().steps;
  options.verbose = params().verbose;
  options.terminal = terminal_;
  bar_ = std::make_unique<ProgressBar>(*out_, options);
  seen_ = 0;
}

void ProgressBarLogger::Show(int64_t batch, const BatchLogs& logs) {
  seen_ = batch + 1;
  static const Logs kNone;
  // The time of the first step is always recorded. Values are read only if they are shown.
  bar_->Update(seen_, bar_->Due(seen_, false) ? logs.Running() : kNone);
}

void ProgressBarLogger::Finish(const Logs& logs) {
  const int64_t steps = seen_ > 0 ? seen_ : params().steps;
  bar_->set_target(steps);
  bar_->Update(steps, logs, true);
}

void ProgressBarLogger::OnTrainBegin() { in_fit_ = true; }
void ProgressBarLogger::OnTrainEnd(const Logs&) { in_fit_ = false; }

void ProgressBarLogger::OnEpochBegin(int epoch) {
  Start();
  if (params().verbose != 0 && params().epochs > 1) {
    *out_ << StrCat("Epoch ", epoch + 1, "/", params().epochs, "\n") << std::flush;
  }
}
void ProgressBarLogger::OnTrainBatchEnd(int64_t batch, const BatchLogs& logs) { Show(batch, logs); }
void ProgressBarLogger::OnEpochEnd(int, Logs& logs) { Finish(logs); }

void ProgressBarLogger::OnTestBegin() {
  if (!in_fit_) Start();
}
void ProgressBarLogger::OnTestBatchEnd(int64_t batch, const BatchLogs& logs) {
  if (!in_fit_) Show(batch, logs);
}
void ProgressBarLogger::OnTestEnd(const Logs& logs) {
  if (!in_fit_) Finish(logs);
}

}  // namespace cohort::keras
