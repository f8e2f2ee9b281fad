// Moved code that is kept from one recording to the next, by the content of the file that it was
// made from. Analysing python3 with its libraries takes five seconds in which the program stands
// still; reading what was kept takes a tenth of one.
#pragma once

#include "trace/moved_code.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace trace {

class MovedCache {
public:
  // A folder of the user's, which is made when something is kept; empty: nothing is kept. What is
  // there by the same Assay for the same settings is found. `chosen` must be empty.
  MovedCache(std::filesystem::path folder, const MoveSettings &settings);

  // Of a file with this content. Nothing if it is not there, is damaged, or another user may have written it.
  std::optional<MovedModule> find(std::span<const std::byte> file) const;
  // Where it cannot be kept it is not; the longest unused is given up for it.
  void keep(std::span<const std::byte> file, const MovedModule &moved) const;

private:
  std::filesystem::path path_of(std::span<const std::byte> file) const;
  void make_room() const;

  std::filesystem::path folder_;
  std::string suffix_; // of the files: who made them, and how
};

} // namespace trace
