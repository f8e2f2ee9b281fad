// Where accesses are made: the function and the source line of each instruction of a trace.
#pragma once

#include "analyze/traced_program.h"
#include "image/symbols.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace analyze {

class AccessPlaces {
public:
  // The program must outlive it.
  explicit AccessPlaces(const TracedProgram &program);

  struct Function {
    uint32_t module = 0; // index in TracedProgram::modules
    uint64_t address = 0;
    std::string name; // demangled; "0x…", its address, without a symbol; "(no function)"
    std::string linkage_name;
    const TracedFunction *traced = nullptr; // null of "(no function)"
    bool was_looked_up = false;
  };
  const std::vector<Function> &functions() const { return functions_; }
  // The same with a name from the file's debug information, if the trace has none.
  const Function &named(uint32_t function);
  uint32_t function_of(uint32_t site) const { return function_of_[site]; } // in functions()
  uint64_t address_of(uint32_t site) const { return program_.sites[site].offset; }
  const TracedModule &module_of(const Function &function) const {
    return program_.modules[function.module];
  }

  struct Line {
    std::string file; // empty if it is not known
    uint32_t line = 0;
  };
  // Read from the file when it is asked for, if the file with this build id is still there.
  Line line_of(uint32_t site);
  Line line_of(const Function &function);
  // A sentence for each file without names and lines.
  const std::vector<std::string> &notes() const { return symbols_.notes(); }

private:
  uint32_t module_of_file(uint32_t number) const;
  const TracedProgram &program_;
  std::vector<Function> functions_;
  std::vector<uint32_t> function_of_; // by site
  image::Symbols symbols_;
};

// What was measured of a place: of a function, an instruction or a file.
template <class Sums> struct PlaceSums {
  uint32_t place = 0;
  Sums sums;
};

// Sums by place, of sums by instruction; `place_of(site)` is below `places`. Places without accesses are left out.
template <class Sums, class PlaceOf>
std::vector<PlaceSums<Sums>> sums_by(const std::vector<Sums> &of_site, size_t places,
                                     PlaceOf place_of) {
  std::vector<PlaceSums<Sums>> rows(places);
  for (uint32_t site = 0; site < of_site.size(); site++)
    if (of_site[site].accesses())
      rows[place_of(site)].sums += of_site[site];
  for (uint32_t place = 0; place < places; place++)
    rows[place].place = place;
  std::erase_if(rows, [](const PlaceSums<Sums> &row) { return row.sums.accesses() == 0; });
  return rows;
}

} // namespace analyze
