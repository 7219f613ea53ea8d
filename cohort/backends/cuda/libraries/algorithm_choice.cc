#include "cohort/backends/cuda/libraries/algorithm_choice.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/logical_devices.h"

namespace cohort::cuda {
namespace {

// So many candidates are timed, or tried in place of one that fails. The heuristics put good ones first.
constexpr size_t kMostTried = 8;

// Adds the line to the file, which is made if it does not exist, in one call of the system, so that lines of several
// processes do not mix.
void Append(const std::string& path, std::string line) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) ThrowErrno(errno, StrCat("[cuda/libraries] cannot open the table of algorithms ", path));
  if (lseek(file, 0, SEEK_END) == 0) line = StrCat(kAlgorithmTableBegin, "\n", line);
  const ssize_t written = write(file, line.data(), line.size());
  const int error = written < 0 ? errno : ENOSPC;
  close(file);
  if (written != static_cast<ssize_t>(line.size())) {
    ThrowErrno(error, StrCat("[cuda/libraries] cannot write to the table of algorithms ", path));
  }
}

}  // namespace

AlgorithmChooser& AlgorithmChooser::Get() {
  static auto* const chooser = new AlgorithmChooser;
  return *chooser;
}

AlgorithmChooser::Made AlgorithmChooser::Make(AlgorithmQuestion& question) {
  const AlgorithmKey key = question.Key();
  if (const auto timed = FindTimed(key)) return {timed};
  if (const auto from_file = FromTable(*FileTable(), key, question)) return {from_file};
  const bool autotune = config::AutotuneEnabled();
  if (autotune && question.CanTime()) {
    const std::optional<Algorithm> fastest = Fastest(key, question);
    return {fastest ? KeepTimed(key, *fastest) : fastest};
  }
  const bool final = !autotune;  // else a later call may time it
  if (const auto committed = FromTable(*CommittedTable(), key, question)) return {committed, final};
  const std::vector<Algorithm> candidates = question.Candidates(1);
  return {candidates.empty() ? std::optional<Algorithm>() : candidates.front(), final};
}

std::optional<Algorithm> AlgorithmChooser::RunAny(const Algorithm& first, AlgorithmQuestion& question) {
  const auto run = [&](const Algorithm& algorithm) -> Status {
    try {
      question.Run(algorithm);
      return Status();
    } catch (const Error& error) {
      return Status(error.code(), error.what());
    }
  };
  const Status failure = run(first);
  if (failure.ok()) return std::nullopt;
  const bool no_memory = failure.code() == Code::kResourceExhausted;
  const bool may_be_algorithm = failure.code() == Code::kInternal || failure.code() == Code::kUnimplemented;
  if (question.CanTime() && (no_memory || may_be_algorithm)) {
    std::vector<Algorithm> candidates;
    try {
      candidates = question.Candidates(kMostTried);
    } catch (const Error&) {
      failure.ThrowIfError();  // says more: the card may have failed
    }
    for (const Algorithm& other : candidates) {
      if (other.words == first.words || !run(other).ok()) continue;
      const AlgorithmKey key = question.Key();
      WarnOnce(StrCat("failed ", key.call),
               StrCat("the algorithm of ", key.library.name, " ", key.library.version, " for the ", key.call, " on ",
                      key.card, " fails, and another one is taken",
                      no_memory ? " for this call: " : " from now on: ", failure.message()));
      return no_memory ? std::optional<Algorithm>() : other;
    }
  }
  failure.ThrowIfError();
  return std::nullopt;
}

std::optional<Algorithm> AlgorithmChooser::FromTable(const AlgorithmTable& table, const AlgorithmKey& key,
                                                     AlgorithmQuestion& question) {
  const AlgorithmTable::Entry* const entry = table.Find(key);
  if (entry == nullptr) {
    if (const AlgorithmTable::Entry* const other = table.FindOtherVersion(key)) {
      const std::string file = other->where.substr(0, other->where.rfind(':'));
      WarnOnce(StrCat("version ", file, key.library.name),
               StrCat("the table of algorithms at ", other->where, " is for ", key.library.name, " ", other->version,
                      ", and this is ", key.library.version,
                      ": entries for other versions are not used; let the table be written anew with this version"));
    }
    return std::nullopt;
  }
  std::optional<Algorithm> checked = question.Check(entry->algorithm);
  if (!checked) {
    WarnOnce(StrCat("refused ", entry->where),
             StrCat(key.library.name, " ", key.library.version, " refuses the algorithm of the table at ", entry->where,
                    " for the ", key.call, " on ", key.card, ": its own choice is taken; remove the line"));
  }
  return checked;
}

std::optional<Algorithm> AlgorithmChooser::Fastest(const AlgorithmKey& key, AlgorithmQuestion& question) {
  const std::vector<Algorithm> candidates = question.Candidates(kMostTried);
  std::optional<Algorithm> fastest;
  double least = 0;
  std::exception_ptr failure;
  for (const Algorithm& candidate : candidates) {
    double time = 0;
    try {
      time = question.Time(candidate);
    } catch (const ResourceExhaustedError&) {
      failure = std::current_exception();
      continue;
    } catch (const InternalError&) {
      failure = std::current_exception();
      continue;
    }
    if (fastest && time >= least) continue;
    fastest = candidate;
    least = time;
  }
  if (!fastest && failure != nullptr) std::rethrow_exception(failure);
  if (fastest) {
    LogDebug("cuda", "of ", candidates.size(), " algorithms of ", key.library.name, " for the ", key.call,
             " the fastest takes ", least, " us");
  }
  return fastest;
}

std::optional<Algorithm> AlgorithmChooser::FindTimed(const AlgorithmKey& key) {
  MutexLock lock(mu_);
  const AlgorithmTable::Entry* const entry = timed_.Find(key);
  return entry == nullptr ? std::optional<Algorithm>() : entry->algorithm;
}

Algorithm AlgorithmChooser::KeepTimed(const AlgorithmKey& key, const Algorithm& algorithm) {
  {
    MutexLock lock(mu_);
    if (const AlgorithmTable::Entry* const entry = timed_.Find(key)) return entry->algorithm;
    timed_.Add(key, {algorithm, key.library.version, "timed"});
  }
  const std::string path = config::AutotuneTable();
  if (path.empty()) return algorithm;
  try {
    Append(path, AlgorithmLine(key, algorithm));
  } catch (const Error& error) {
    WarnOnce(StrCat("write ", path), StrCat(error.what(), ": what was measured is lost at the end of the process"));
  }
  return algorithm;
}

std::shared_ptr<const AlgorithmTable> AlgorithmChooser::FileTable() {
  const std::string path = config::AutotuneTable();
  MutexLock lock(mu_);
  if (file_table_ != nullptr && file_ == path) return file_table_;
  const bool reads = !path.empty() && (FileExists(path) || !config::AutotuneEnabled());
  file_table_ =
      reads ? std::make_shared<const AlgorithmTable>(path, ReadFile(path)) : std::make_shared<const AlgorithmTable>();
  file_ = path;
  return file_table_;
}

std::shared_ptr<const AlgorithmTable> AlgorithmChooser::CommittedTable() {
  MutexLock lock(mu_);
  if (committed_ == nullptr) {
    committed_ = std::make_shared<const AlgorithmTable>("algorithms.txt", kCommittedAlgorithms);
  }
  return committed_;
}

void AlgorithmChooser::WarnOnce(const std::string& about, const std::string& text) {
  {
    MutexLock lock(mu_);
    if (!warned_.insert(about).second) return;
  }
  LogWarning("cuda", text);
}

void AlgorithmChooser::Forget() {
  products_.Forget();
  convolutions_.Forget();
  MutexLock lock(mu_);
  timed_ = AlgorithmTable();
  file_table_ = nullptr;
  committed_ = nullptr;
  warned_.clear();
}

void AlgorithmChooser::SetCommitted(const std::string& text) {
  MutexLock lock(mu_);
  committed_ = std::make_shared<const AlgorithmTable>("algorithms.txt", text);
}

}  // namespace cohort::cuda
