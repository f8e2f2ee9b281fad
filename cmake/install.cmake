# What is installed, where, and the Debian package.
#
#   bin/                 assay, assay-cc, assay-c++
#   lib/assay/           plugin, runtime, its export list, the launcher of assay_instrument
#   lib/cmake/Assay/     find_package(Assay), toolchain file
#   share/doc/assay/     the pages of docs/
#   share/man, share/bash-completion, share/zsh, share/fish   printed by assay itself
#
# The build folder has the same layout below it, and everything is found relative to the program, so that
# an uninstalled Assay and one in any prefix work alike.
set(ASSAY_CMAKE_DIR lib/cmake/Assay)
set(package ${CMAKE_SOURCE_DIR}/cmake/package)

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/${ASSAY_CMAKE_DIR}/AssayConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_file(${package}/AssayConfig.cmake ${CMAKE_BINARY_DIR}/${ASSAY_CMAKE_DIR}/AssayConfig.cmake COPYONLY)
configure_file(${package}/toolchain.cmake ${CMAKE_BINARY_DIR}/${ASSAY_CMAKE_DIR}/toolchain.cmake COPYONLY)
configure_file(${package}/instead-of-compiler ${CMAKE_BINARY_DIR}/${ASSAY_LIB_DIR}/instead-of-compiler COPYONLY)

install(TARGETS assay RUNTIME DESTINATION bin)
install(FILES
    ${CMAKE_BINARY_DIR}/${ASSAY_CMAKE_DIR}/AssayConfigVersion.cmake
    ${package}/AssayConfig.cmake ${package}/toolchain.cmake
  DESTINATION ${ASSAY_CMAKE_DIR})
install(PROGRAMS ${package}/instead-of-compiler DESTINATION ${ASSAY_LIB_DIR})
install(DIRECTORY docs/ DESTINATION share/doc/assay FILES_MATCHING PATTERN "*.md")
install(FILES README.md DESTINATION share/doc/assay OPTIONAL)
install(FILES LICENSE DESTINATION share/doc/assay RENAME copyright)

# Completions and the manual page, printed by the program from its command table.
set(generated ${CMAKE_BINARY_DIR}/share)
set(printed)
foreach(line IN ITEMS "bash bash-completion/completions/assay" "zsh zsh/vendor-completions/_assay"
                      "fish fish/vendor_completions.d/assay.fish" "man man/man1/assay.1")
  separate_arguments(line)
  list(GET line 0 kind)
  list(GET line 1 file)
  get_filename_component(folder ${file} DIRECTORY)
  file(MAKE_DIRECTORY ${generated}/${folder})
  add_custom_command(OUTPUT ${generated}/${file}
    COMMAND assay completions ${kind} -o ${generated}/${file} DEPENDS assay VERBATIM)
  list(APPEND printed ${generated}/${file})
  install(FILES ${generated}/${file} DESTINATION share/${folder})
endforeach()
add_custom_target(completions ALL DEPENDS ${printed})

# The Debian package: build/assay_VERSION_amd64.deb. Libraries are found by dpkg-shlibdeps; clang is run,
# not linked, and must be the one that the plugin was built for.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME assay)
set(CPACK_PACKAGE_CONTACT "The Assay maintainers <maintainers@assay.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "Programs are built with assay-cc in place of clang and run as usual; assay then answers which allocations are hot, cold, short-lived or badly used.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "clang-tools-22") # assay fields apply
set(CPACK_DEBIAN_PACKAGE_DEPENDS "clang-22 (>= 1:${LLVM_VERSION_MAJOR}.${LLVM_VERSION_MINOR}), clang-22 (<< 1:${LLVM_VERSION_MAJOR}.99)")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF) # the runtime's archive must keep its symbols
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR})
include(CPack)
