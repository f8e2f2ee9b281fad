// The words of globals, by symbol.
#pragma once

#include "analyze/objects.h"

namespace analyze {

// A row for each symbol with a used word; what no symbol names is one row a module ("constants of app"), without a map.
std::vector<ObjectRow> object_globals(const profile::Profile &profile, image::Symbols &symbols);

} // namespace analyze
