// AlgorithmChooser: the one place where the algorithm of a product or a convolution is chosen.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/libraries/algorithm.h"
#include "cohort/backends/cuda/libraries/algorithm_table.h"
#include "cohort/backends/cuda/libraries/blas.h"
#include "cohort/backends/cuda/libraries/dnn.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

// What the chooser asks about one call of a library. The kernel that makes the call owns it. One thread uses it.
class AlgorithmQuestion {
 public:
  virtual ~AlgorithmQuestion() = default;
  virtual AlgorithmKey Key() = 0;
  // Returns at most `most` algorithms, in the order in which the library's heuristics prefer them. None if the library
  // does not compute the call.
  virtual std::vector<Algorithm> Candidates(size_t most) = 0;
  // Returns the algorithm with its workspace, or nothing if the library refuses it for this call.
  virtual std::optional<Algorithm> Check(const Algorithm& algorithm) = 0;
  // Returns whether Time may be called now, and Run again after an error. They may not while a step is recorded.
  virtual bool CanTime() const = 0;
  // Enqueues the call with the algorithm. Throws ResourceExhaustedError if there is no memory for it, InternalError if
  // the library fails, and UnimplementedError if it does not support the call.
  virtual void Run(const Algorithm& algorithm) = 0;
  // Runs the call with the algorithm, waits for it, and returns how long one run takes, in microseconds. Throws
  // ResourceExhaustedError if there is no memory for it, and InternalError if the library fails.
  virtual double Time(const Algorithm& algorithm) = 0;
};

// The algorithms that were chosen for calls of one kind. Thread-safe.
template <typename Call>
class ChosenAlgorithms {
 public:
  // An algorithm, or nothing if the library does not compute the call.
  using Choice = std::optional<Algorithm>;

  // Returns nothing if nothing was chosen yet.
  std::optional<Choice> Find(const Call& call) const {
    MutexLock lock(mu_);
    const auto found = chosen_.find(call);
    return found == chosen_.end() ? std::optional<Choice>() : found->second;
  }
  // Keeps a choice. Returns the one that is kept: that of another thread, if it was there first.
  Choice Keep(const Call& call, const Choice& choice) {
    MutexLock lock(mu_);
    if (chosen_.size() == kMost) chosen_.clear();
    return chosen_.emplace(call, choice).first->second;
  }
  // Keeps a choice in place of another one.
  void Replace(const Call& call, const Choice& choice) {
    MutexLock lock(mu_);
    chosen_.insert_or_assign(call, choice);
  }
  void Forget() {
    MutexLock lock(mu_);
    chosen_.clear();
  }

 private:
  static constexpr size_t kMost = 4096;  // a program with more of them chooses anew

  mutable Mutex mu_;
  std::map<Call, Choice> chosen_ COHORT_GUARDED_BY(mu_);
};

// Chooses algorithms, and keeps the choices for the process. In this order:
// - what this process has timed before;
// - the file of config::AutotuneTable, if there is one;
// - if config::AutotuneEnabled(): the candidate that takes the least time;
// - the table that belongs to the program (algorithms.txt);
// - the library's first candidate.
// So without autotune equal calls have equal algorithms on the same model of card, with the same versions of the
// libraries and the same tables. Get returns the only object of the process, which is never destroyed. Thread-safe: two
// threads may time the same call at the same time, and both get the choice of one of them.
class AlgorithmChooser {
 public:
  static AlgorithmChooser& Get();

  // The calls, by card.
  using ProductCall = std::pair<int, GemmSpec>;
  using ConvolutionCall = std::tuple<int, ConvolutionPart, DnnConvolution>;

  // Make a call with the algorithm that is chosen for it. Return false if the library does not compute the call. They
  // ask `question` for algorithms only if the call is new. If the algorithm fails, and no step is recorded, they try
  // the library's other candidates, because its heuristics may offer algorithms that do not work. The one that works is
  // kept; but if there was only too little memory for the first one, later calls try that one again. A warning says so
  // once. Throw the first error if none works, and what `question` throws. Throw InvalidArgumentError, which names file
  // and line, if the file of the config has a bad line, and the file's error if it cannot be read, except that with
  // autotune it need not exist.
  bool Run(const ProductCall& call, AlgorithmQuestion& question) { return Run(products_, call, question); }
  bool Run(const ConvolutionCall& call, AlgorithmQuestion& question) { return Run(convolutions_, call, question); }

  // For tests: forgets all choices, what was timed, and which warnings were written, and reads the file anew.
  void Forget();
  // For tests: sets the text of the table that belongs to the program.
  void SetCommitted(const std::string& text);

 private:
  // A choice, and whether it is kept.
  struct Made {
    std::optional<Algorithm> algorithm;
    bool final = true;
  };

  AlgorithmChooser() = default;
  template <typename Call>
  bool Run(ChosenAlgorithms<Call>& chosen, const Call& call, AlgorithmQuestion& question) {
    const std::optional<Algorithm> algorithm = Choose(chosen, call, question);
    if (!algorithm) return false;
    if (const std::optional<Algorithm> other = RunAny(*algorithm, question)) chosen.Replace(call, other);
    return true;
  }
  template <typename Call>
  std::optional<Algorithm> Choose(ChosenAlgorithms<Call>& chosen, const Call& call, AlgorithmQuestion& question) {
    if (const auto known = chosen.Find(call)) return *known;
    const Made made = Make(question);
    return made.final ? chosen.Keep(call, made.algorithm) : made.algorithm;
  }
  // Makes the call with the algorithm, or with another one if that fails. Returns the other one if it is to be kept.
  std::optional<Algorithm> RunAny(const Algorithm& first, AlgorithmQuestion& question);
  Made Make(AlgorithmQuestion& question);
  // Returns what the table says, if the library takes it. Warns once for each table if it has entries for other
  // versions only, or an entry that the library refuses.
  std::optional<Algorithm> FromTable(const AlgorithmTable& table, const AlgorithmKey& key, AlgorithmQuestion& question);
  // Returns the candidate that takes the least time, or nothing if there is no candidate.
  static std::optional<Algorithm> Fastest(const AlgorithmKey& key, AlgorithmQuestion& question);
  // Keeps what was timed, and adds it to the file of the config. Returns what is kept.
  Algorithm KeepTimed(const AlgorithmKey& key, const Algorithm& algorithm);
  std::optional<Algorithm> FindTimed(const AlgorithmKey& key);
  // Returns the table of the config's file, which is read at the first call.
  std::shared_ptr<const AlgorithmTable> FileTable();
  std::shared_ptr<const AlgorithmTable> CommittedTable();
  // Writes a warning, the first time that it is called with this text.
  void WarnOnce(const std::string& about, const std::string& text);

  ChosenAlgorithms<ProductCall> products_;
  ChosenAlgorithms<ConvolutionCall> convolutions_;
  Mutex mu_;
  AlgorithmTable timed_ COHORT_GUARDED_BY(mu_);
  std::string file_ COHORT_GUARDED_BY(mu_);  // the path of file_table_
  std::shared_ptr<const AlgorithmTable> file_table_ COHORT_GUARDED_BY(mu_);
  std::shared_ptr<const AlgorithmTable> committed_ COHORT_GUARDED_BY(mu_);
  std::set<std::string> warned_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::cuda
