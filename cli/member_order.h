// Whether a program means the same where the members of a struct are in another order.
#pragma once

#include "cli/source_folder.h"

#include <filesystem>
#include <string>
#include <vector>

namespace cli {

// Throws Failure where code of these files knows the members of `record` by their order. `work` is
// a folder for files of its own.
void refuse_uses_of_order(const SourceFolder &sources, const std::string &record,
                          const std::filesystem::path &work);

// Throws Failure where a list gives the members of `record` other values in `after`: what is written
// by another name of the type, comes from a macro, or whose braces were left out is not edited.
// Returns what to look at: where functions are called in another order.
std::vector<std::string> refuse_other_values(const SourceFolder &before, const SourceFolder &after,
                                             const std::string &record,
                                             const std::filesystem::path &work);

// Throws Failure where the compiler sees members that are used before they are initialized in
// `after`, and fewer or none in `before`.
void refuse_new_uninitialized(const SourceFolder &before, const SourceFolder &after,
                              const std::filesystem::path &work);

} // namespace cli
