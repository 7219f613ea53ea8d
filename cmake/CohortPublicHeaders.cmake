# cohort_public_headers(ROOT OUT) sets OUT to the umbrella header and all our headers that it includes, directly or not.
# The paths are relative to ROOT.
cmake_policy(VERSION 3.25)  # an install script has no policies set

function(cohort_public_headers ROOT OUT)
  set(waiting cohort/cohort.h)
  set(found)
  while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found ${header})
    file(STRINGS ${ROOT}/${header} lines REGEX "^ *# *include *\"cohort/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[^\"]*\"([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND waiting ${included})
    endforeach()
  endwhile()
  set(${OUT} ${found} PARENT_SCOPE)
endfunction()
