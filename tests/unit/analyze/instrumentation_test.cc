// What assay-cc puts into a program is told from the program's own instructions by what it accesses.
#include "analyze/instrumentation.h"

#include <gtest/gtest.h>

namespace {

TEST(Instrumentation, IsToldByWhatItAccesses) {
  const image::Data data = {{{0x68080, 4, "__assay_fields_asks"}, {0x68100, 8, "table"}}, {}};
  for (const char *own :
       {"cmp dword ptr [0x68080], 0x0", "inc qword ptr gs:[rcx+0x50000000]",
        "movzx eax, byte ptr [rdx+0x60000000]", "mov byte ptr [rax+0x4e000000], 0x80"})
    EXPECT_TRUE(analyze::is_instrumentation(own, data)) << own;
  for (const char *programs :
       {"cmp dword ptr [0x68084], 0x0", "mov rax, qword ptr [0x68100]", "mov eax, dword ptr [rdi]",
        "add eax, 0x50000000", "mov rax, qword ptr [rdi+0x50]", "ret", "jnz 0x68080"})
    EXPECT_FALSE(analyze::is_instrumentation(programs, data)) << programs;
}

} // namespace
