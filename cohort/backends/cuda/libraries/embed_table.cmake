# Writes a C++ source with the text of the table of algorithms that belongs to the program:
#   cmake -DOUTPUT=committed_algorithms.cc -DTABLE=algorithms.txt -P embed_table.cmake
# The text stands in pieces, because a compiler need not take long ones.
file(READ "${TABLE}" _text)
string(REPLACE "\n" "\n)cohort\"\nR\"cohort(" _text "${_text}")
file(WRITE "${OUTPUT}" "// Made by embed_table.cmake.
#include \"cohort/backends/cuda/libraries/algorithm_table.h\"

namespace cohort::cuda {

const char kCommittedAlgorithms[] = R\"cohort(${_text})cohort\";

}  // namespace cohort::cuda
")
