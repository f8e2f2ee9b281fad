// What this run could not record. Counted from anywhere, written to the profile with every flush.
#pragma once

#include "abi/records.h"

namespace assay {

// Counts; the first of a kind is also said on standard error, once, in the words of abi/losses.def.
// Any context, signal handlers included.
void count_loss(AssayLossKind kind, uint64_t count);

// Before the first loss: children of a fork do not say again what one of them, or their parent, said.
void share_losses();

// Counts without a message: for losses that are ordinary (allocations before the start).
void count_loss_quietly(AssayLossKind kind, uint64_t count);

// The message alone: for what may still be mended.
void say_loss(AssayLossKind kind);

// In a process that has no profile: another process of the run writes it.
void count_loss_of_child(AssayLossKind kind, uint64_t count);

// Takes what was counted of one kind since the last call.
uint64_t take_loss(AssayLossKind kind);

} // namespace assay
