// Parts that the answers of `assay explain` share.
#pragma once

#include <cstdint>
#include <string>

namespace report {

std::string address_text(uint64_t address); // in hexadecimal

// "100 %" is all, and nothing less. Of nothing there is no share.
std::string share_text(uint64_t part, uint64_t whole);

} // namespace report
