// What reading, merging and writing ask of a tool: what its records mean, and how what it measured
// adds. One ToolRecords for each tool of abi/tools.def, in profile/NAME_records.cc.
#pragma once

#include "profile/container.h"
#include "profile/file_numbers.h"
#include "profile/profile.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>

namespace profile {

class Assembler;

// Reads a tool's records of one file. A process's records come in one piece.
class ToolReader {
public:
  virtual ~ToolReader() = default;
  // Takes a record of the tool's. False if it is another's; throws Failure if it makes no sense.
  virtual bool take(const RecordView &record, Process &process) = 0;
  // The section `assay_sites` of a module, which any tool may have entries in.
  virtual void on_sites(uint32_t module, std::span<const std::byte> sites) {
    (void)module, (void)sites;
  }
  // The program began anew: what was measured of this process so far is left out.
  virtual void reset(Process &) {}
  virtual void end_process_records(Process &) {}
  // The file has been read: numbers become ids, sums go where they belong.
  virtual void resolve(FileNumbers &, Assembler &) {}
};

// The ids that a profile's things have got in another, or in another order.
struct NewIds {
  std::vector<ModuleId> modules;
  std::vector<TypeId> types;
  std::vector<StackId> stacks;
  void translate(ModuleId &id) const { translate(id, modules); }
  void translate(TypeId &id) const { translate(id, types); }
  void translate(StackId &id) const { translate(id, stacks); }

private:
  template <class Id> static void translate(Id &id, const std::vector<Id> &ids) {
    if (id.known())
      id = ids[id.v];
  }
};

// Adds what a tool measured in several profiles. What is meaningful in one process only is a field
// of Process and needs no sums but translate(); what adds up over processes is a field of Profile.
class ToolSums {
public:
  virtual ~ToolSums() = default;
  // `into` has the other's modules, types and stacks already, by these ids.
  virtual void add(Profile &into, const Profile &other, const NewIds &ids) {
    (void)into, (void)other, (void)ids;
  }
  // The same, where nobody needs the other any more: may move what it has.
  virtual void take(Profile &into, Profile &other, const NewIds &ids) { add(into, other, ids); }
  // The ids in what belongs to one process.
  virtual void translate(Process &process, const NewIds &ids) { (void)process, (void)ids; }
  // Modules, types and stacks have been sorted: the tool's own sums get their ids, and the canonical order.
  virtual void finish(Profile &profile, const NewIds &ids) { (void)profile, (void)ids; }
};

// Where a tool writes its records to, and the numbers of what they name.
class RecordSink {
public:
  explicit RecordSink(const Profile &profile, ContainerWriter &out)
      : profile_(profile), out_(out) {}
  ContainerWriter &out() { return out_; }
  // Numbers of the file; what they stand for is written first, where that has not been done. 0 for what is not known.
  uint32_t module(ModuleId module) const;
  uint32_t context(StackId stack, TypeId type = {}, const Origin &origin = {});

private:
  friend class ProfileWriter;
  uint32_t origin(const Origin &origin);
  const Profile &profile_;
  ContainerWriter &out_;
  std::map<ModuleId, uint32_t> modules_;
  std::map<std::tuple<StackId, TypeId, Origin>, uint32_t> contexts_;
  std::map<Origin, uint32_t> origins_;
};

struct ToolRecords {
  // Does it count what is done with each object that the process has made? Of those that the child
  // of a fork has from its parent it knows nothing then (loss forked_use).
  bool follows_objects = false;
  // Kinds of abi/losses.def that are losses of what this tool measures, and none of another's
  // unless that has them, too.
  std::span<const uint32_t> losses = {};
  std::unique_ptr<ToolReader> (*reader)();
  std::unique_ptr<ToolSums> (*sums)() = [] { return std::make_unique<ToolSums>(); };
  // Can the sums of all processes be written among this one's records?
  bool (*can_carry_sums)(const Process &) = [](const Process &) { return false; };
  // What the tool measured of this process; in the last one, the carrier, the sums too.
  void (*write)(const Profile &, const Process &, bool is_carrier, RecordSink &);
};

// By bit of abi/tools.def.
const std::vector<const ToolRecords *> &tool_records();

// The bits of those that follow objects.
uint64_t tools_that_follow_objects();

// Calls reader.on(record, tail) if it has such a function for the record's kind. False if not.
template <class Reader> bool dispatch(Reader &reader, const RecordView &record) {
  switch (record.kind) {
#define ASSAY_RECORD(Name, number, meaning)                                                        \
  case number:                                                                                     \
    if constexpr (requires { reader.on(fixed_part<Assay##Name>(record), record.tail); }) {         \
      reader.on(fixed_part<Assay##Name>(record), record.tail);                                     \
      return true;                                                                                 \
    }                                                                                              \
    return false;
#define ASSAY_FIELD(type, name, meaning)
#define ASSAY_TAIL(element, name, meaning)
#define ASSAY_END(Name)
#include "abi/records.def"
  default: return false;
  }
}

} // namespace profile
