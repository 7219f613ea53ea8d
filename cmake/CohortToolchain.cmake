# Sets compiler, linker and cache options for all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# What is not marked COHORT_EXPORT (cohort/core/export.h) stays inside the shared library.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
# CMake asks for -O3. The kernels, which spend a step's time, ask for it themselves (cohort/backends/CMakeLists.txt); with -O2
# everything else builds sooner.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(COHORT_CCACHE ccache)
  if(COHORT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${COHORT_CCACHE})
  endif()
  find_program(COHORT_MOLD mold)
  if(COHORT_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# The options with which every Cohort target compiles. None of them reaches a consumer.
add_library(cohort_build_options INTERFACE)
target_compile_options(cohort_build_options INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# Source paths in objects begin at the root of the project. So an object is the same in every checkout, even if ccache brings
# it from another one, and cohort/graph/node_name.cc knows Cohort's own sources by "cohort/". Where CCACHE_BASEDIR is set,
# ccache gives the compiler paths relative to the build folder.
file(RELATIVE_PATH COHORT_RELATIVE_ROOT ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR})
string(REGEX REPLACE "/$" "" COHORT_RELATIVE_ROOT "${COHORT_RELATIVE_ROOT}")
target_compile_options(cohort_build_options INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  $<$<BOOL:${COHORT_RELATIVE_ROOT}>:-fmacro-prefix-map=${COHORT_RELATIVE_ROOT}/=>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(cohort_build_options INTERFACE -Wthread-safety -Werror=thread-safety)
endif()
if(COHORT_WARNINGS_AS_ERRORS)
  target_compile_options(cohort_build_options INTERFACE -Werror)
endif()
if(COHORT_SANITIZE)
  add_compile_options(-fsanitize=${COHORT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${COHORT_SANITIZE})
endif()
