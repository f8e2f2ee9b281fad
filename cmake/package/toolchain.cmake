# Builds a whole project with assay-cc and assay-c++. For single targets see AssayConfig.cmake.
get_filename_component(Assay_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(CMAKE_C_COMPILER "${Assay_PREFIX}/bin/assay-cc")
set(CMAKE_CXX_COMPILER "${Assay_PREFIX}/bin/assay-c++")
