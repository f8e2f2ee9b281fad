# find_package(Assay): profile single targets of a project that is otherwise built with any compiler.
#
#   assay_instrument(TARGET [heap …])   build TARGET for these tools (heap if none is named), with debug info
#
# The target's compile and link commands are run by assay-cc or assay-c++ in place of the compiler that
# CMake chose, through the launcher properties that CMake has for ccache and its like: so there is no second
# list of flags here, and what the drivers learn later holds here too. An executable gets the runtime when
# it is linked; instrument the executable as well as the libraries whose accesses matter. To build a whole
# project so, use the toolchain file beside this one:
#
#   cmake -DCMAKE_TOOLCHAIN_FILE=…/lib/cmake/Assay/toolchain.cmake …
#
# Needs CMake 3.21 with the Ninja or Makefile generators.

get_filename_component(Assay_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(Assay_LAUNCHER "${Assay_PREFIX}/lib/assay/instead-of-compiler")
set(Assay_CC "${Assay_PREFIX}/bin/assay-cc")
set(Assay_CXX "${Assay_PREFIX}/bin/assay-c++")
set(Assay_EXECUTABLE "${Assay_PREFIX}/bin/assay")

foreach(file IN ITEMS "${Assay_LAUNCHER}" "${Assay_CC}" "${Assay_CXX}" "${Assay_EXECUTABLE}")
  if(NOT EXISTS "${file}")
    set(Assay_FOUND FALSE)
    set(Assay_NOT_FOUND_MESSAGE "${file} is missing; install Assay again")
    return()
  endif()
endforeach()

function(assay_instrument target)
  if(CMAKE_VERSION VERSION_LESS 3.21)
    message(FATAL_ERROR "assay_instrument needs CMake 3.21; use the toolchain file instead")
  endif()
  if(NOT CMAKE_GENERATOR MATCHES "Ninja|Makefiles")
    message(FATAL_ERROR "assay_instrument works with Ninja and Makefiles, not ${CMAKE_GENERATOR}; use the toolchain file instead")
  endif()
  set(tools ${ARGN})
  if(NOT tools)
    set(tools heap)
  endif()
  list(JOIN tools "," tools)
  if("${CMAKE_C_COMPILER_ID} ${CMAKE_CXX_COMPILER_ID}" MATCHES "GNU")
    set(kinds INTERPROCEDURAL_OPTIMIZATION)
    foreach(config IN LISTS CMAKE_BUILD_TYPE CMAKE_CONFIGURATION_TYPES)
      string(TOUPPER "INTERPROCEDURAL_OPTIMIZATION_${config}" kind)
      list(APPEND kinds ${kind})
    endforeach()
    foreach(kind IN LISTS kinds)
      get_target_property(is_on ${target} ${kind})
      if(is_on)
        message(STATUS "Assay: ${target} is built without ${kind}: gcc's archiver does not know clang's code")
        set_target_properties(${target} PROPERTIES ${kind} OFF)
      endif()
    endforeach()
  endif()
  set_target_properties(${target} PROPERTIES
    C_COMPILER_LAUNCHER "${Assay_LAUNCHER};${Assay_CC};-fassay=${tools}"
    C_LINKER_LAUNCHER "${Assay_LAUNCHER};${Assay_CC};-fassay=${tools}"
    CXX_COMPILER_LAUNCHER "${Assay_LAUNCHER};${Assay_CXX};-fassay=${tools}"
    CXX_LINKER_LAUNCHER "${Assay_LAUNCHER};${Assay_CXX};-fassay=${tools}")
endfunction()
