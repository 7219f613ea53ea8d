// CheckChunks: whether the chunks of a dataset can be read without harm. The HDF5 library unpacks a chunk to whatever
// the packed bytes give, and does not compare that with the size of a chunk. So a few kilobytes could become gigabytes,
// and a chunk that is too short could be read behind its end. Internal to keras/.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cohort::keras {

// What all datasets of a file may take together.
struct ChunkBudget {
  size_t file_bytes = 0;    // the size of the file; no chunk is stored in more
  uint64_t most_bytes = 0;  // of one unpacked chunk
  uint64_t chunks = 0;      // how many chunks may still be looked at; CheckChunks counts down
};

// Looks at each stored chunk of a dataset in chunks, and unpacks it piece by piece into a small buffer. Returns "" if
// each has the right size, or else what is wrong. `sizes` are the dataset's dimensions, and `element_bytes` is the size
// of an element in the file. The filters must be gzip, shuffle and fletcher32, each at most once, and shuffle before
// gzip. Requires: the caller holds the library's lock, and the layout is H5D_CHUNKED.
std::string CheckChunks(hid_t dataset, hid_t properties, const std::vector<hsize_t>& sizes, size_t element_bytes,
                        ChunkBudget& budget);

}  // namespace cohort::keras
