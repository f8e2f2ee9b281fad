// The numbers by which a profile names things, as types: a number of one kind cannot be passed for
// one of another. Contexts, modules and origins are numbered from 1 on, in one process and for its
// file; a type's number is a hash. 0 is none. They are converted where they are counted, where they
// index a table, and where they go into a record (abi/records.def), whose fields are plain numbers.
#pragma once

#include <stdint.h>

namespace assay {

// Of a context: a call path with the type and the origin of what it allocates. From
// StackDepot::intern() (core/stacks/stack_depot.h).
enum class ContextId : uint32_t {};
constexpr ContextId kNoContext{};

// Of a module: an executable or shared object that is or was mapped. From ModuleMap (core/file/module_map.h).
enum class ModuleId : uint32_t {};
constexpr ModuleId kNoModule{};

// Of the type that an allocation makes, or of a local variable. From the compiler (abi/sites.h); kNoType: not known.
enum class TypeId : uint32_t {};
constexpr TypeId kNoType{};

// Of where objects come from that malloc did not make. From origin_number()
// (core/objects/origins.h); kNoOrigin: from malloc.
enum class OriginId : uint32_t {};
constexpr OriginId kNoOrigin{};

} // namespace assay
