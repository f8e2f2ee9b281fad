// Whether instrumented code reports the stretches that it executes (AssayFieldsUnit::asks).
#pragma once

#include <stdint.h>

namespace assay::fields {

// False where there is no memory.
bool create_asking();
// A module's variable, from now on until it is dropped: before the module can be unmapped.
void add_asking(uint32_t *asks);
void drop_asking(const uint32_t *asks);
void let_code_report(bool reports);
// In the child of a fork; nothing is reported there until a round begins.
void reset_asking_in_child();

} // namespace assay::fields
