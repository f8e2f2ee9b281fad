// Whether a program means the same where the members of a struct are in another order.
#pragma once

#include "cli/source_folder.h"

#include <filesystem>
#include <string>

namespace cli {

// Throws Failure where code of these files knows the members of `record` by their order. `work` is
// a folder for files of its own.
void refuse_uses_of_order(const SourceFolder &sources, const std::string &record,
                          const std::filesystem::path &work);

// Throws Failure where the compiler sees members that are used before they are initialized in
// `after`, and fewer or none in `before`.
void refuse_new_uninitialized(const SourceFolder &before, const SourceFolder &after,
                              const std::filesystem::path &work);

} // namespace cli
