// A short list: a program has few pools with names of their own, and each looks its number up once.

#include "runtime/core/objects/origins.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/names.h"

namespace assay {
namespace {

struct {
  Names<4096> names;
  uint32_t written;
} constinit origins = {};

} // namespace

OriginId origin_number(AssayOriginKind kind, const char *name) {
  return OriginId{origins.names.number_of(kind, name)};
}

void write_origins() {
  for (uint32_t end = origins.names.count(); origins.written < end;) {
    uint32_t number = ++origins.written;
    runtime.file.append(ASSAY_RECORD_Origin, AssayOrigin{number, origins.names.key(number)},
                        origins.names.text(number), origins.names.size(number));
  }
}

static void reset_origins_in_child() {
  origins.written = 0;
  origins.names.reset_in_child();
}
ASSAY_RESET_IN_CHILD(reset_origins_in_child);

} // namespace assay
