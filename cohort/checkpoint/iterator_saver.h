// IteratorSaver: writes the positions of a graph's iterators beside a checkpoint, and restores them, so that a training
// that goes on from the checkpoint also goes on in its input.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"

namespace cohort {

struct COHORT_EXPORT IteratorSaverOptions {
  // The task of this process: "/job:worker/task:1". "": the program has only one process.
  std::string task = "";
  // The chief also saves the iterators on parameter servers, that is on tasks of the job "ps".
  bool is_chief = true;
  std::string name = "save_iterators";  // name scope of the saver's nodes
};

// Saves the iterators (data::MakeGraphIterator) that are this process's to save: those on its own task, those without a
// task, and if it is the chief those on parameter servers. Iterators on other workers are left to these workers, so
// that a dead worker cannot block a save. Each process writes a file of its own, "<prefix>.iterators" or, for example,
// "<prefix>.iterators-worker-1", where `prefix` is that of a checkpoint. The folder need not be shared, but then a
// process finds only the files of its own machine. DeleteCheckpoint deletes the files with their checkpoint.
//
// The program owns it; the graph must outlive it. Thread-safe, because it does not change.
class COHORT_EXPORT IteratorSaver {
 public:
  // Adds the nodes that it needs to the graph. Requires: the iterators are made, and the graph is not finalized. Throws
  // InvalidArgumentError if `options.task` does not name a task.
  explicit IteratorSaver(Graph& graph, const IteratorSaverOptions& options = {});

  // Returns the names of the iterators that it saves.
  std::vector<std::string> iterators() const;
  // Returns the path of this process's file for a checkpoint.
  std::string PathFor(const std::string& prefix) const;

  // Writes the positions. An iterator that is not initialized is left out. Writes no file if there is no position. The
  // positions are read one after another, between elements; a step that runs meanwhile may or may not count. Waits at
  // most 30 s for each iterator. Throws what the session throws: DeadlineExceededError if an iterator takes longer to
  // find an element for a step. Throws what writing throws, such as ResourceExhaustedError for a full disk. If it
  // throws, there is no new file.
  void Save(Session& session, const std::string& prefix) const;

  // Makes the iterators go to the positions of the file. Call it before the initializers of the iterators run: they
  // then begin at the positions. It also moves iterators that are initialized already. Returns false if there is no
  // file; the iterators then begin at the start of their datasets. If the dataset is described in another way than when
  // the position was saved, or if the file lacks an iterator, that iterator begins at the start, and a warning says so.
  // Throws DataLossError if the file is damaged, and what the session throws.
  bool Restore(Session& session, const std::string& prefix) const;

 private:
  struct Entry {
    std::string name;  // of the handle's node
    Output position;   // of the _IteratorSave
    Output fed;        // fed to `restore`
    Node* restore = nullptr;
  };

  std::vector<Entry> entries_;
  std::string suffix_;  // of the file: ".iterators-worker-1"
};

}  // namespace cohort
