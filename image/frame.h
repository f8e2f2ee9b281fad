// Places in code, and the call stacks that are made of them.
//
// A program has few places and many ways through them: a profile of 190,000 contexts of 55 frames
// has some thousand different frames. So stacks share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace image {

// One function on a call stack. A call site may yield several, when callees were inlined into it.
struct Frame {
  std::string function;     // demangled; "name+0xoffset" of the module where nothing is known
  std::string linkage_name; // as in the symbol table; empty where nothing is known
  std::string file;         // empty if unknown, as are the lines 0
  uint32_t line = 0, column = 0;
  std::string function_file; // where the function is declared
  uint32_t function_start_line = 0;
  std::string module;   // path
  uint64_t address = 0; // in the module's ELF image: the call, not the return address
  bool inlined = false; // into the next outer frame
};

// A sequence of frames, innermost first, that reads like a vector of them. Frames never change and
// live as long as any stack that holds them: a copy of a stack copies pointers.
class CallStack {
  using Shared = std::vector<std::shared_ptr<const Frame>>;

public:
  class Iterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Frame;
    using difference_type = std::ptrdiff_t;
    using pointer = const Frame *;
    using reference = const Frame &;

    Iterator() = default;
    explicit Iterator(Shared::const_iterator at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return at_->get(); }
    Iterator &operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator &, const Iterator &) = default;

  private:
    Shared::const_iterator at_;
  };

  CallStack() = default;
  CallStack(std::initializer_list<Frame> frames) {
    for (const Frame &frame : frames)
      push_back(frame);
  }

  bool empty() const { return frames_.empty(); }
  size_t size() const { return frames_.size(); }
  const Frame &operator[](size_t index) const { return *frames_[index]; }
  const Frame &front() const { return *frames_.front(); }
  const Frame &back() const { return *frames_.back(); }
  Iterator begin() const { return Iterator(frames_.begin()); }
  Iterator end() const { return Iterator(frames_.end()); }

  void reserve(size_t size) { frames_.reserve(size); }
  void push_back(Frame frame) {
    frames_.push_back(std::make_shared<const Frame>(std::move(frame)));
  }
  // Outside of what is here; the frames are shared with the other stack.
  void append(const CallStack &outer) {
    frames_.insert(frames_.end(), outer.frames_.begin(), outer.frames_.end());
  }

private:
  Shared frames_;
};

} // namespace image
