// Ordinarily by dlsym(RTLD_NEXT): what the program would have called without us, whoever provides
// it. With --wrap by the names that the linker gives them. All of them are there: the loader
// allocates a message for each that is not, and a malloc of the program's own may be instrumented,
// whose code counts in shadows that are not there yet.

#include "runtime/core/system/real_functions.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#ifdef ASSAY_WRAP
#define ASSAY_REAL(symbol, field, result, parameters) extern "C" result __real_##symbol parameters;
#define ASSAY_REAL_WEAK(symbol, field, result, parameters)                                         \
  extern "C" __attribute__((weak)) result __real_##symbol parameters;
#include "runtime/core/system/real_functions.def"
extern "C" __attribute__((weak)) const char __assay_own_malloc; // defined by the driver, or absent
#endif

namespace assay {

constinit RealFunctions real = {};

namespace {
constinit bool looking = false;
}

extern "C" __attribute__((weak)) char *dlerror() noexcept; // a static program has none

ResolvingFunctions::ResolvingFunctions() {
  looking = true;
}

ResolvingFunctions::~ResolvingFunctions() {
  if (&dlerror) {
    dlerror();
    dlerror(); // frees the message that the first one has returned
  }
  looking = false;
}

bool is_resolving_functions() {
  return looking;
}

void find_real_functions() {
  if (real.free || looking)
    return;
  ResolvingFunctions resolving;
#ifdef ASSAY_WRAP
#define ASSAY_REAL(symbol, field, result, parameters) real.field = __real_##symbol;
#define ASSAY_REAL_WEAK ASSAY_REAL
#else
#define ASSAY_REAL(symbol, field, result, parameters)                                              \
  real.field = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #symbol));
#define ASSAY_REAL_WEAK ASSAY_REAL
#endif
#include "runtime/core/system/real_functions.def"
}

// Ours, whoever defines malloc for the program.
extern "C" void *assay_malloc(size_t);
extern "C" void assay_free(void *);

#ifdef ASSAY_WRAP
bool is_interposed() {
  return true;
}
bool has_own_malloc() {
  return &__assay_own_malloc != nullptr;
}
#else
namespace {

const link_map *module_of(const void *address) {
  Dl_info info;
  link_map *module = nullptr;
  return dladdr1(address, &info, (void **)&module, RTLD_DL_LINKMAP) ? module : nullptr;
}

// Are definitions of ours found before the next ones? Not if a plug-in has brought us.
bool is_before(const void *ours, const void *next) {
  const link_map *module = module_of(ours), *const later = module_of(next);
  while (module && module != later)
    module = module->l_next;
  return module != nullptr;
}

// Does the program's name lead to our function? In an executable that is no PIE and takes the
// function's address, it means a stub of the executable, which jumps to the first definition behind
// it.
bool leads_to(const char *name, const void *ours, const void *next) {
  const void *found = dlsym(RTLD_DEFAULT, name);
  Dl_info info;
  const ElfW(Sym) *symbol = nullptr;
  return found == ours || (found && dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) &&
                           symbol && symbol->st_shndx == SHN_UNDEF && is_before(ours, next));
}

} // namespace

bool is_interposed() {
  if (leads_to("malloc", (const void *)assay_malloc, (const void *)real.malloc) &&
      leads_to("free", (const void *)assay_free, (const void *)real.free))
    return true;
  const auto become_public = [](auto &field, const char *name) {
    if (void *found = dlsym(RTLD_DEFAULT, name))
      field = (__typeof__(+field))found;
  };
  become_public(real.malloc, "malloc");
  become_public(real.calloc, "calloc");
  become_public(real.realloc, "realloc");
  become_public(real.free, "free");
  return false;
}
bool has_own_malloc() {
  return false;
}
#endif

} // namespace assay
