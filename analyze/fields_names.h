// Fields as reports name them.
#pragma once

#include "profile/fields.h"

#include <string>
#include <string_view>
#include <vector>

namespace analyze {

// The path to a field, such as `table.std::_Vector_base<int>::_Impl::begin`: bases by their own
// names alone, table._Impl::begin.
std::string short_field(std::string_view path);

// The same of all fields of a record. What a member is made of within the C++ library is left out where the names
// differ without it: `hits` of std::atomic, `rows._M_start` and `rows._M_finish` of std::vector.
std::vector<std::string> short_fields(const profile::Record &record);

} // namespace analyze
