#include "abi/sites.h"
#include "abi/tools.h"
#include "compiler/tool_flags.h"

namespace assay::compiler::heap {

constexpr ToolMode kModes[] = {{"lines", 0},
                               {"total", ASSAY_COUNTERS_TOTAL},
                               {"fine", ASSAY_COUNTERS_FINE},
                               {"globals", ASSAY_COUNTERS_GLOBALS},
                               {"stack", ASSAY_COUNTERS_STACK}};

extern const ToolFlags flags;
const ToolFlags flags = {
    .name = "heap",
    .tool = ASSAY_TOOL_heap,
    .help = "lines (default): reads and writes of 64 bytes; total: accesses of 64 bytes; fine: of "
            "32; with globals, with stack",
    .modes = kModes,
    .exclusive_bits = ASSAY_COUNTERS_LAYOUT,
    .dynamic_bit = ASSAY_COUNTERS_DYNAMIC,
    .alias = "-fheapprof",
};

} // namespace assay::compiler::heap
