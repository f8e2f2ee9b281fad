#include "analyze/frame.h"

namespace analyze {

CallStack frames_of(const profile::Profile &profile, profile::StackId stack,
                    image::Symbols &symbols) {
  std::vector<const CallStack *> calls;
  size_t size = 0;
  for (const profile::CodeLocation &location : profile.stack(stack).frames) {
    uint32_t module = location.module.known() ? location.module.v : image::Symbols::kNoModule;
    calls.push_back(&symbols.call(module, location.offset));
    size += calls.back()->size();
  }
  CallStack frames;
  frames.reserve(size); // there are many stacks: room to grow would be half of the memory
  for (const CallStack *call : calls)
    frames.append(*call);
  if (frames.empty()) {
    image::Frame nothing;
    nothing.function = "(no stack)";
    frames.push_back(std::move(nothing));
  }
  return frames;
}

std::string program_build_id(const profile::Profile &profile, const profile::Process &process) {
  for (const profile::Module &module : profile.modules)
    if (module.path == process.executable)
      return image::build_id_text(module.build_id);
  return "";
}

} // namespace analyze
