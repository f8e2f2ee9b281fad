# assay_room(NAME [SOURCES …] [ROOMS …] [LIBRARIES …]): the static library of one room.
#   SOURCES    if not every .cc of the folder
#   ROOMS      rooms it links; scripts/check-rooms reads these lines
#   LIBRARIES  third-party targets
#   HEADERS    of ours, that most files of the room include: read once. Refused: files compiled together (CMAKE_UNITY_BUILD), because then
#              two files of a room may not have a local class `Reader`, a function `percent` or a constant `kKeys` each
# The header path is the top folder, so that includes read #include "room/file.h".

set(ASSAY_WARNINGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough)
if(ASSAY_WERROR)
  list(APPEND ASSAY_WARNINGS -Werror)
endif()

# PLUGIN: the target is loaded into a clang that has no sanitizer.
function(assay_tool_flags target)
  cmake_parse_arguments(FLAGS "PLUGIN" "" "" ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${target} PRIVATE ${ASSAY_WARNINGS})
  if(NOT FLAGS_PLUGIN AND ASSAY_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${ASSAY_SANITIZE})
  endif()
endfunction()

# Headers that most files of a target read are read once. They are named in a file of ours: CMake's own, which it generates, keeps its
# old time when the list changes, and is not compiled again.
function(assay_precompile target)
  set(includes "#pragma once\n")
  foreach(name IN LISTS ARGN)
    if(NOT name MATCHES "^<")
      set(name "\"${name}\"")
    endif()
    string(APPEND includes "#include ${name}\n")
  endforeach()
  set(header ${CMAKE_CURRENT_BINARY_DIR}/${target}_precompiled.h)
  file(CONFIGURE OUTPUT ${header} CONTENT "${includes}" @ONLY)
  target_precompile_headers(${target} PRIVATE ${header})
endfunction()

# What the precompiled headers instantiate is instantiated once, too.
function(assay_instantiate_early target)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:-fpch-instantiate-templates>)
endfunction()

function(assay_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;ROOMS;LIBRARIES;HEADERS" ${ARGN})
  if(NOT ROOM_SOURCES)
    file(GLOB ROOM_SOURCES CONFIGURE_DEPENDS *.cc)
  endif()
  add_library(assay_${name} STATIC ${ROOM_SOURCES})
  assay_tool_flags(assay_${name})
  foreach(room IN LISTS ROOM_ROOMS)
    target_link_libraries(assay_${name} PUBLIC assay_${room})
  endforeach()
  target_link_libraries(assay_${name} PUBLIC ${ROOM_LIBRARIES})
  # Every file reads most of these; `./dev asan` builds without, so that each still names what it needs.
  assay_precompile(assay_${name} <fmt/format.h> <algorithm> <functional> <map> <memory> <optional>
                   <set> <string> <unordered_map> <vector> ${ROOM_HEADERS})
  assay_instantiate_early(assay_${name})
endfunction()

# LLVM's headers are not ours to fix: they come as system headers. Tools link the parts that they use: the dynamic
# linker needs 20 ms for the shared libLLVM, and a command answers in 5.
find_package(LLVM 22.1 REQUIRED CONFIG)
# Of LLVM's folder only its own: with libc++-22-dev it also holds a cxxabi.h and an unwind.h, which would hide those
# of the C++ library that is used.
set(ASSAY_LLVM_INCLUDE ${CMAKE_BINARY_DIR}/llvm-include)
file(MAKE_DIRECTORY ${ASSAY_LLVM_INCLUDE})
set(folders llvm llvm-c)
if(NOT ASSAY_DEMO)
  list(APPEND folders clang clang-c)
endif()
foreach(folder IN LISTS folders)
  find_path(ASSAY_${folder}_PARENT ${folder} PATHS ${LLVM_INCLUDE_DIRS} NO_DEFAULT_PATH REQUIRED)
  file(CREATE_LINK ${ASSAY_${folder}_PARENT}/${folder} ${ASSAY_LLVM_INCLUDE}/${folder} SYMBOLIC)
endforeach()
add_library(assay_llvm INTERFACE)
target_include_directories(assay_llvm SYSTEM INTERFACE ${ASSAY_LLVM_INCLUDE})
target_link_libraries(assay_llvm INTERFACE LLVMSymbolize LLVMDebugInfoDWARF LLVMObject LLVMDemangle LLVMSupport)
target_link_options(assay_llvm INTERFACE LINKER:--gc-sections)
