// Instructions of a program that was built with assay-cc which are not the program's own.
#pragma once

#include "image/elf.h"

#include <string_view>

namespace analyze {

// Whether an instruction reads or writes what is Assay's: a variable of that name among the data of its file, or a
// shadow. `text` in Intel's syntax, as binary::Decoder writes it.
bool is_instrumentation(std::string_view text, const image::Data &data);

} // namespace analyze
