# Defines the library for other projects: the umbrella target cohort::cohort, with COHORT_BUILD_SHARED the shared library
# cohort::cohort_shared, and, with COHORT_INSTALL, the install rules. Include this file after the modules are defined:
# cohort_module() adds each module to the property COHORT_LIBRARIES.
include(CMakePackageConfigHelpers)

get_property(_libraries GLOBAL PROPERTY COHORT_LIBRARIES)

# The target is not named `cohort`, because that is the command line program.
add_library(cohort_umbrella INTERFACE)
add_library(cohort::cohort ALIAS cohort_umbrella)
target_link_libraries(cohort_umbrella INTERFACE ${_libraries})

# libcohort.so out of the same objects. It shows what public headers mark COHORT_EXPORT and nothing else. A program links
# either cohort::cohort or cohort::cohort_shared: with both, there would be two registries of ops and kernels.
set(_shared)
if(COHORT_BUILD_SHARED AND NOT COHORT_SANITIZE)
  set(_shared cohort_shared)
  add_library(cohort_shared SHARED)
  add_library(cohort::cohort_shared ALIAS cohort_shared)
  foreach(_library IN LISTS _libraries)
    target_sources(cohort_shared PRIVATE $<TARGET_OBJECTS:${_library}>)
  endforeach()
  set_target_properties(cohort_shared PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME cohort VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})  # before 1.0 a minor version may change the API
  target_include_directories(cohort_shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(cohort_shared INTERFACE cxx_std_20)
  # For what they are linked with; of the static libraries themselves nothing is left to take.
  target_link_libraries(cohort_shared PRIVATE ${_libraries})
  target_link_options(cohort_shared PRIVATE -Wl,--exclude-libs,ALL -Wl,-z,defs)
endif()

if(NOT COHORT_INSTALL)
  return()
endif()

foreach(_library IN LISTS _libraries)
  string(REGEX REPLACE "^cohort_" "" _name ${_library})
  set_target_properties(${_library} PROPERTIES EXPORT_NAME ${_name})
endforeach()
set_target_properties(cohort_umbrella PROPERTIES EXPORT_NAME cohort)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cohort)
install(TARGETS ${_libraries} cohort_umbrella ${_shared} EXPORT cohortTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT cohortTargets NAMESPACE cohort:: DESTINATION ${_package_dir})

# Installs the headers that cohort/cohort.h includes, directly or not. They are found during the installation.
install(CODE "
  include(\"${PROJECT_SOURCE_DIR}/cmake/CohortPublicHeaders.cmake\")
  cohort_public_headers(\"${PROJECT_SOURCE_DIR}\" headers)
  foreach(header IN LISTS headers)
    get_filename_component(folder \${header} DIRECTORY)
    file(INSTALL \"${PROJECT_SOURCE_DIR}/\${header}\"
      DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/\${folder}\")
  endforeach()")

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cohortConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cohortConfig.cmake INSTALL_DESTINATION ${_package_dir} NO_SET_AND_CHECK_MACRO)
# Before version 1.0 a minor version may change the API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cohortConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cohortConfig.cmake ${PROJECT_BINARY_DIR}/cohortConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/CohortDnnl.cmake
  ${PROJECT_SOURCE_DIR}/cmake/CohortFarmHash.cmake
  ${PROJECT_SOURCE_DIR}/cmake/CohortHttp.cmake
  ${PROJECT_SOURCE_DIR}/cmake/CohortKerasFiles.cmake
  ${PROJECT_SOURCE_DIR}/cmake/CohortRe2.cmake DESTINATION ${_package_dir})

# Installs the documents and the sources of the examples. tools/cohort installs the program.
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
