// A real program on the real processor, one instruction at a time: the oracle of everything that says
// what machine code means.
#pragma once

#include "binary/machine.h"

#include <cstdint>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace oracle {

// A traced process that is stopped between two instructions. Its first thread alone is stepped; its
// children run free. Ends with the object.
class SingleStep {
public:
  // Starts the program, stopped at its first instruction, without address space randomization.
  explicit SingleStep(const std::vector<std::string> &command);
  // Stops this process' own copy: a child that waits for what the caller makes of it.
  SingleStep();
  ~SingleStep();
  SingleStep(const SingleStep &) = delete;

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }
  int exit_status() const { return status_; } // as of waitpid, once it is not running

  // Executes one instruction. False if the program ended, or if a signal came instead.
  bool step();
  // The signal that came instead; the program is given it with the next step, unless it is dropped.
  int signal() const { return signal_; }
  void drop_signal() { signal_ = 0; }

  // General registers, flags, segment bases and pc. The rest of the machine stays as it is.
  void read_general(binary::Machine &machine) const;
  void write_general(const binary::Machine &machine);
  // Vector and mask registers, x87 and MXCSR. `room`: the register of x87 that is pushed next is empty; no other is.
  void read_vectors(binary::Machine &machine) const;
  void write_vectors(const binary::Machine &machine, bool room = false);
  // Zeros in the parts of vector registers that this processor lacks, where a write of the others leaves them.
  static void clear_missing(binary::Machine &machine);

  // How many bytes could be read or written.
  size_t read(uint64_t address, std::span<std::byte> bytes) const;
  bool write(uint64_t address, std::span<const std::byte> bytes);

private:
  void start_tracing();
  bool wait();
  bool is_at_cpuid(uint64_t &behind) const;
  bool run_to(uint64_t address);
  pid_t pid_ = -1;
  bool running_ = false;
  int status_ = 0, signal_ = 0;
};

// Memory of a traced process as micro-ops see it: reads go there, writes are kept back.
class KeptBack : public binary::Memory {
public:
  explicit KeptBack(const SingleStep &process) : process_(process) {}
  struct Store {
    uint64_t address, value;
    unsigned width;
  };

  bool load(uint64_t address, unsigned width, uint64_t &value) override;
  bool store(uint64_t address, unsigned width, uint64_t value) override;
  const std::vector<Store> &stores() const { return stores_; }
  void forget() { stores_.clear(); }

private:
  const SingleStep &process_;
  std::vector<Store> stores_;
};

// What micro-ops left that the processor left otherwise, a line each; empty if they agree. `ours` has executed the
// instruction on memory, `native` is the process after it.
std::string differences(const binary::Instruction &instruction, const binary::Machine &ours,
                        const KeptBack &memory, const binary::Machine &native,
                        const SingleStep &process);

} // namespace oracle
