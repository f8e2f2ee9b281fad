#include "trace/live_accesses.h"

namespace trace {

void LiveAccesses::file(const TracedFile &file, const MovedModule &moved) {
  files_.push_back(file);
  functions_.push_back(moved.functions);
  decoder_.add_skeletons(file, moved.skeletons);
  decoder_.add(file, moved.groups);
}

void LiveAccesses::end(const TraceEnd &end) {
  end_ = end;
  replay_.end(!end.was_killed());
}

} // namespace trace
