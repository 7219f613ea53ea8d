// ReadAll: runs a dataset to its end.
#pragma once

#include "cohort/data/dataset.h"
#include "tests/fuzz/fuzz_input.h"

namespace cohort::fuzz {

// Reads at most `most` elements. After an error it goes on, as a program may, until an end or the tenth error.
inline void ReadAll(const data::Dataset& dataset, int most = 1000) {
  std::unique_ptr<data::Iterator> iterator;
  if (!Accepts([&] { iterator = dataset.MakeIterator(); })) return;
  data::Element element;
  bool more = true;
  for (int errors = 0; more && errors < 10 && most > 0; --most) {
    if (!Accepts([&] { more = iterator->Next(&element); })) ++errors;
  }
}

}  // namespace cohort::fuzz
