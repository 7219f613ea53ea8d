# Defines oneDNN as the target cohort_dnnl. Debian's own config file requires OpenCL headers that we do not use. So this
# file finds header and library itself. It is installed with the package, whose config file includes it, too.
find_path(COHORT_DNNL_INCLUDE_DIR dnnl.hpp)
find_library(COHORT_DNNL_LIBRARY dnnl)
mark_as_advanced(COHORT_DNNL_INCLUDE_DIR COHORT_DNNL_LIBRARY)
if(NOT COHORT_DNNL_INCLUDE_DIR OR NOT COHORT_DNNL_LIBRARY)
  message(FATAL_ERROR "oneDNN (dnnl.hpp, libdnnl) was not found; on Debian: apt-get install libdnnl-dev")
endif()
if(NOT TARGET cohort_dnnl)
  add_library(cohort_dnnl INTERFACE IMPORTED GLOBAL)
  target_include_directories(cohort_dnnl SYSTEM INTERFACE ${COHORT_DNNL_INCLUDE_DIR})
  target_link_libraries(cohort_dnnl INTERFACE ${COHORT_DNNL_LIBRARY})
endif()
