// Which thread has which call chain.
#pragma once

#include <stdint.h>

#include "runtime/core/stacks/call_chain.h"

namespace assay {

// A chain for the calling thread, for as long as this object lives. There are a few dozen: the main thread has its
// own, the others share theirs, each by preference the same.
class TakenChain {
public:
  TakenChain();
  ~TakenChain();
  TakenChain(const TakenChain &) = delete;
  TakenChain &operator=(const TakenChain &) = delete;
  CallChain *operator->() { return chain_; }
  CallChain &operator*() { return *chain_; }

private:
  uint32_t number_;
  CallChain *chain_;
};

bool create_call_chains();

} // namespace assay
