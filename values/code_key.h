// Which page of code: as the samplers in the kernel and in programs name it.
#pragma once

#include "abi/published_code.h"
#include "abi/samples.h"

#include <tuple>

namespace values {

inline assay_code_key key_of(const assay_miss &miss) {
  return {miss.page, miss.file, miss.device, miss.version};
}

// Pages of one file lie side by side.
struct CodeKeyOrder {
  bool operator()(const assay_code_key &a, const assay_code_key &b) const {
    return std::tie(a.file, a.device, a.version, a.page) <
           std::tie(b.file, b.device, b.version, b.page);
  }
};

} // namespace values
