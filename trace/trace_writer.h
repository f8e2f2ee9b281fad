// Writes a trace into a file (docs/trace-format.md) while the program runs.
#pragma once

#include "base/ordered_work.h"
#include "base/spares.h"
#include "profile/container.h"
#include "trace/trace_data.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace trace {

// What was written stays, whatever happens then; buffers that wait for it, some MiB, are lost if the tool is
// killed. A trace that was there before is replaced when the program was reached. Buffers are
// compressed by other threads; once a record could not be written, each function throws why.
class TraceWriter : public TraceSink {
public:
  // Throws Failure if it could not be written there.
  TraceWriter(const std::string &path, uint32_t process, const std::vector<std::string> &command);
  ~TraceWriter() override;

  // Only parts of the run are recorded: the options that choose them, as the user wrote them.
  void parts(const std::vector<std::string> &options);

  void file(const TracedFile &file, const MovedModule &moved) override;
  void mapping(const TracedMapping &mapping) override;
  void stream(const TracedStream &stream) override;
  void buffer(const TracedBuffer &buffer) override;
  void end(const TraceEnd &end) override;
  // What was logged of that, and by how many streams.
  uint64_t logged_bytes() const { return logged_bytes_; }
  uint64_t streams() const { return streams_.size(); }
  // Writes what waits; the recording has failed elsewhere, and does not end.
  void finish() { work_.finish(); }
  // The program was not reached: what was there before stays, and nothing else.
  void discard();

private:
  struct Buffer; // on its way into the file
  static void compress(Buffer &buffer);
  void write(const Buffer &buffer);

  const std::string path_;
  const bool is_new_;   // there was nothing of that name
  std::string written_; // its name: another one while an older trace stands there
  profile::ContainerWriter writer_;
  uint64_t logged_bytes_ = 0;
  std::set<uint32_t> streams_;
  base::Spares<Buffer> buffers_;
  base::OrderedWork work_; // last: it uses all of this
};

} // namespace trace
