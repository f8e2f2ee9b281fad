#include "abi/sites.h"
#include "abi/tools.h"
#include "compiler/tool_flags.h"

namespace assay::compiler::fields {

constexpr ToolMode kModes[] = {{"windows", 0},
                               {"counts", ASSAY_FIELDS_COUNTS},
                               {"gep", ASSAY_FIELDS_COUNTS | ASSAY_FIELDS_ADDRESSES}};

extern const ToolFlags flags;
const ToolFlags flags = {
    .name = "fields",
    .tool = ASSAY_TOOL_fields,
    .help = "windows (default): counts, and sampled windows for affinity and false sharing; "
            "counts: counts alone; gep: how often addresses of fields are computed "
            "(getelementptr), to compare with",
    .modes = kModes,
    .exclusive_bits = 0,
    .dynamic_bit = 0,
    .alias = "-fsanitize=efficiency-cache-frag",
    .clang_plugin = "libassay_members.so",
    .follows_allocations = false,
};

} // namespace assay::compiler::fields
