// Whether LLVM's object reader can be trusted with a file.
#pragma once

#include <optional>
#include <string>

namespace image {

// Why the file must not be given to llvm::object, as part of a sentence ("its section headers …");
// nullopt if nothing speaks against it. Reads headers only.
std::optional<std::string> section_damage(const std::string &path);

} // namespace image
