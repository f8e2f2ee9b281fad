// The machine record: caches, cpu, kernel.
#pragma once

#include "runtime/core/file/profile_file.h"

namespace assay {

void write_machine(ProfileFile &file);

} // namespace assay
