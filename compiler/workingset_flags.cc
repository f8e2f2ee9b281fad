#include "abi/sites.h"
#include "abi/tools.h"
#include "compiler/tool_flags.h"

namespace assay::compiler::workingset {

constexpr ToolMode kModes[] = {{"byte", 0},
                               {"bit", ASSAY_LINES_BITS},
                               {"half", ASSAY_LINES_HALF},
                               {"accesses", ASSAY_LINES_ACCESSES}};

extern const ToolFlags flags;
const ToolFlags flags = {
    .name = "workingset",
    .tool = ASSAY_TOOL_workingset,
    .help = "byte (default): eight snapshots in a byte a line; bit: one bit a line; half: lines of "
            "32 bytes; with accesses, as a clock",
    .modes = kModes,
    .exclusive_bits = ASSAY_LINES_ENCODING,
    .dynamic_bit = ASSAY_LINES_DYNAMIC,
    .alias = "-fsanitize=efficiency-working-set",
};

} // namespace assay::compiler::workingset
