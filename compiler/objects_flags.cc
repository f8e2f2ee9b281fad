#include "abi/sites.h"
#include "abi/tools.h"
#include "compiler/tool_flags.h"

namespace assay::compiler::objects {

constexpr ToolMode kModes[] = {{"byte", 0},
                               {"counters", ASSAY_WORDS_COUNTERS},
                               {"bytes", ASSAY_WORDS_BITS},
                               {"locality", ASSAY_WORDS_LOCALITY},
                               {"no-globals", ASSAY_WORDS_NO_GLOBALS},
                               {"stack", ASSAY_WORDS_STACK}};

extern const ToolFlags flags;
const ToolFlags flags = {
    .name = "objects",
    .tool = ASSAY_TOOL_objects,
    .help =
        "byte (default): 4 bytes of program in a byte, sampled; counters: in 32 bits that count "
        "accesses; bytes: a bit for each byte; locality: the last eight samples; with "
        "no-globals, or with stack",
    .modes = kModes,
    .exclusive_bits = ASSAY_WORDS_ENCODING,
    .dynamic_bit = ASSAY_WORDS_DYNAMIC,
    .alias = "-fsanitize=efficiency-cache-frag",
};

} // namespace assay::compiler::objects
