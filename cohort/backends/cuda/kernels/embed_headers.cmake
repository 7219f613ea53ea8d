# Writes a C++ source with the text of headers, for compilers that run inside of the program:
#   cmake -DOUTPUT=chain_headers.cc "-DHEADERS=first.h|second.h" -P embed_headers.cmake
# The lines that include files are left out, so a header comes behind those that it needs.
string(REPLACE "|" ";" _headers "${HEADERS}")
set(_text "")
foreach(_header IN LISTS _headers)
  file(READ "${_header}" _one)
  string(REGEX REPLACE "#(include|pragma once)[^\n]*\n" "" _one "${_one}")
  string(APPEND _text "${_one}")
endforeach()
file(WRITE "${OUTPUT}" "// Made by embed_headers.cmake.
#include \"cohort/backends/cuda/kernels/chain_source.h\"

namespace cohort::cuda {

const char kChainHeaders[] = R\"cohort(${_text})cohort\";

}  // namespace cohort::cuda
")
