#include "cohort/core/process/hung_thread.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// All HungThreads of this process.
struct Table {
  Mutex mu;
  std::vector<std::pair<const HungThread*, std::string>> all COHORT_GUARDED_BY(mu);
};

Table& TheTable() {
  static Table* const table = new Table;  // never freed: threads may ask while the process ends
  return *table;
}

}  // namespace

HungThread::HungThread(std::string what) {
  Table& table = TheTable();
  MutexLock lock(table.mu);
  table.all.emplace_back(this, std::move(what));
}

HungThread::~HungThread() {
  Table& table = TheTable();
  MutexLock lock(table.mu);
  std::erase_if(table.all, [this](const auto& entry) { return entry.first == this; });
}

bool HungThread::Any() {
  Table& table = TheTable();
  MutexLock lock(table.mu);
  return !table.all.empty();
}

std::string HungThread::DescribeAll() {
  Table& table = TheTable();
  MutexLock lock(table.mu);
  std::vector<std::string> texts;
  for (const auto& [hung, what] : table.all) texts.push_back(what);
  return StrJoin(texts, "; ");
}

}  // namespace cohort
