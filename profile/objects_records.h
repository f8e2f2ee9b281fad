// What the records of objects mean, for those that put a profile together by hand.
#pragma once

#include "profile/merge.h"

namespace profile {

void add(Assembler &assembler, const ObjectGroup &group);
void add(Assembler &assembler, const ObjectGlobals &globals);

} // namespace profile
