// What the numbers of one file mean: of contexts, modules, types and origins. Numbers are resolved
// when the file has been read, so that the order of the records that name things does not matter.
#pragma once

#include "profile/profile.h"

#include <unordered_map>

namespace profile {

class Assembler;

using ContextNumber = uint32_t;

// The number of a context in a record. Throws Failure for an impossible one.
ContextNumber context_number(uint64_t context);

class FileNumbers {
public:
  explicit FileNumbers(Assembler &output) : output_(output) {}

  // Throw Failure for what makes no sense.
  void add(const AssayModule &record, std::span<const std::byte> tail, Process &process);
  void add(const AssayModuleUnload &record, Process &process);
  void add(const AssaySites &record, std::span<const std::byte> tail);
  void add(const AssayContext &record, std::span<const std::byte> tail);
  void add(const AssayOrigin &record, const std::string &name);
  void end_process_records() { mapping_of_.clear(); }

  // None if it is not known.
  ModuleId module(uint32_t number) const;

  struct Context {
    StackId stack;
    TypeId type; // none if unknown
    Origin origin;
  };
  // What a context number stands for. An unknown one counts as a bad record, unless the file was cut short.
  Context context(ContextNumber number);
  StackId stack(ContextNumber number);

private:
  struct FileContext {
    uint32_t type = 0;
    uint32_t origin = 0;
    bool cut = false;
    std::vector<uint64_t> frames;
    friend bool operator==(const FileContext &, const FileContext &) = default;
  };
  CodeLocation location(uint64_t frame) const;
  Stack stack_of(ContextNumber context);
  TypeId type_of(uint32_t short_id, const Stack &stack);
  Origin origin_of(uint32_t origin);
  void lose(uint32_t kind);

  Assembler &output_;
  std::unordered_map<uint32_t, ModuleId> modules_;
  std::unordered_map<uint32_t, size_t> mapping_of_; // of this process: index into Process::mappings
  std::unordered_map<uint32_t, std::vector<std::pair<ModuleId, TypeId>>> types_by_short_id_;
  std::unordered_map<ContextNumber, FileContext> contexts_;
  std::unordered_map<uint32_t, Origin> origins_;
};

// Strings, each with its zero byte; and one without.
std::vector<std::string> read_strings(std::span<const std::byte> tail);
std::string read_text(std::span<const std::byte> tail);

} // namespace profile
