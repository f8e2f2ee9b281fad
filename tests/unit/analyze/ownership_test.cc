#include "analyze/ownership.h"

#include "base/fail.h"

#include <gtest/gtest.h>

namespace {

image::Frame frame(const std::string &function, const std::string &linkage_name = "",
                   const std::string &module = "/bin/app") {
  image::Frame f;
  f.function = function;
  f.linkage_name = linkage_name.empty() ? function : linkage_name;
  f.module = module;
  return f;
}

TEST(Ownership, SkipsTheMachineryOfContainers) {
  image::CallStack frames = {
      frame("operator new(unsigned long)", "_Znwm", "/usr/lib/libstdc++.so.6"),
      frame("std::__new_allocator<int>::allocate(unsigned long, void const*)",
            "_ZNSt15__new_allocatorIiE8allocateEmPKv"),
      frame("void std::vector<int>::_M_realloc_insert<int>(int&&)",
            "_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJiEEEvv"),
      frame("app::grow()", "_ZN3app4growEv"), frame("main")};
  EXPECT_EQ(analyze::owner(frames), 3u);
}

TEST(Ownership, SkipsWrappersByName) {
  for (const char *wrapper :
       {"xmalloc",
        "g_malloc0",
        "my_calloc",
        "xstrdup",
        "ns::Pool::allocate(int)",
        "safe_realloc",
        "mem_alloc",
        "mallocWithAlarm",
        "sqlite3Malloc",
        "sqlite3_malloc64",
        "sqlite3DbMallocRawNN",
        "dbMallocRawFinish",
        "pcache1Alloc",
        "pcache1AllocPage",
        "sqlite3DbStrNDup",
        "luaM_malloc_",
        "luaM_saferealloc_",
        "luaC_newobj",
        "l_alloc",
        "malloc_or_die",
        "XMALLOC",
        "b2Alloc(int)",
        "void *app::alloc_array<std::pair<int, int>>(unsigned long)",
        "pugi::impl::(anonymous namespace)::xml_allocator::allocate_memory_oob(unsigned long)",
        "b2StackAllocator::Push(int)",
        "ztrymalloc_usable_internal",
        "jv_mem_alloc_unguarded"})
    EXPECT_EQ(analyze::owner({frame("malloc"), frame(wrapper), frame("parse"), frame("main")}), 2u)
        << wrapper;
}

TEST(Ownership, DoesNotSkipWhatOnlyLooksAlike) {
  for (const char *function :
       {"locality", "allocate_tree_nodes_of", "malloc_stats_printer", "standard",
        "allocateBtreePage", "pugi::allocate_node(xml_allocator&)", "luaH_new", "sqlite3ExprDup",
        "b2BlockAllocator::b2BlockAllocator()", "ThreadPool::run()", "balance", "with_lock", "n"})
    EXPECT_EQ(analyze::owner({frame("malloc"), frame(function), frame("main")}), 1u) << function;
}

TEST(Ownership, ScalarTypesAreTheWrappersOwn) {
  EXPECT_TRUE(analyze::through_wrapper({frame("malloc"), frame("xmalloc"), frame("parse")}));
  EXPECT_FALSE(analyze::through_wrapper({frame("malloc"), frame("parse"), frame("xmalloc")}));
  EXPECT_FALSE(analyze::through_wrapper(
      {frame("operator new(unsigned long)", "_Znwm"),
       frame("std::allocator<int>::allocate(unsigned long)", "_ZNSaIiE8allocateEm")}));
  image::Frame own = frame("Message::operator new(unsigned long)", "_ZN7MessagenwEm");
  own.file = "message.cc";
  EXPECT_TRUE(analyze::through_wrapper({own, frame("parse")}));
  EXPECT_EQ(analyze::owner({own, frame("parse"), frame("main")}, {}), 1u);
}

TEST(Ownership, AProgramOfWrappersOnlyIsItsOutermost) {
  EXPECT_EQ(analyze::owner({frame("malloc"), frame("xmalloc"), frame("_start")}), 1u);
}

TEST(Ownership, AllMachineryFallsBackToTheFirst) {
  EXPECT_EQ(analyze::owner({frame("malloc")}), 0u);
}

TEST(Ownership, SkipsAnnotations) {
  image::Frame annotation = frame("assay_event(char const*, unsigned long)");
  annotation.file = "/usr/lib/assay/include/assay/annotate.h";
  EXPECT_EQ(analyze::owner({annotation, frame("serve"), frame("main")}), 1u);
  annotation.file = "/home/me/assay.c"; // somebody else's
  EXPECT_EQ(analyze::owner({annotation, frame("serve"), frame("main")}), 0u);
}

TEST(Ownership, ConstMembersOfStdAreMachinery) {
  EXPECT_TRUE(analyze::is_allocation_machinery(
      frame("std::vector<int>::size() const", "_ZNKSt6vectorIiSaIiEE4sizeEv")));
  EXPECT_FALSE(analyze::is_allocation_machinery(frame("Stack::push(int)", "_ZN5Stack4pushEi")));
}

// The runtime stands in front of it, in the program's own file.
TEST(Ownership, ThreadLocalStorageIsWhoMakesTheThreads) {
  EXPECT_EQ(analyze::owner({frame("pthread_create"), frame("start_workers"), frame("main")}), 1u);
  EXPECT_EQ(analyze::owner({frame("thrd_create"), frame("start_workers"), frame("main")}), 1u);
}

TEST(Ownership, TheProfilersOwnLibrariesAreMachinery) {
  EXPECT_TRUE(analyze::is_allocation_machinery(
      frame("libassay_preload.so+0x10", "", "/usr/lib/assay/libassay_preload.so")));
}

TEST(Ownership, FunctionsWithinFunctionsOfStdAreMachinery) {
  for (const char *linkage :
       {"_ZZNSt3__112basic_stringIcE6resizeEvENKUlvE_clEv",
        "_ZZNKSt3__16vectorIiE4growEvENUlvE_clEv", "_ZZZNSt1aEvENUlvE_clEvE1x"})
    EXPECT_TRUE(analyze::is_allocation_machinery(frame("auto f()::'lambda'()", linkage)))
        << linkage;
  EXPECT_FALSE(
      analyze::is_allocation_machinery(frame("app::f()::'lambda'()", "_ZZN3app1fEvENKUlvE_clEv")));
}

// Contexts in which a function is called by so many others, for objects of these sizes and types.
analyze::Wrappers found(const std::string &function, int callers,
                        const std::vector<uint64_t> &sizes, const std::vector<std::string> &types) {
  analyze::WrapperSearch search;
  for (int caller = 0; caller < callers; caller++)
    search.add(
        {frame("malloc"), frame(function), frame("user" + std::to_string(caller)), frame("main")},
        analyze::Wrappers(), types[caller % types.size()], sizes[caller % sizes.size()],
        sizes[caller % sizes.size()]);
  analyze::Wrappers wrappers;
  search.find(wrappers);
  return wrappers;
}

TEST(Ownership, WhatManyCallForManySizesIsAWrapper) {
  image::CallStack frames = {frame("malloc"), frame("zmalloc_for_keys"), frame("parse"),
                             frame("main")};
  EXPECT_EQ(analyze::owner(frames), 1u);
  EXPECT_EQ(analyze::owner(frames, found("zmalloc_for_keys", 6, {8, 100}, {""})), 2u);
  EXPECT_EQ(analyze::owner(frames, found("zmalloc_for_keys", 6, {8, 100}, {"A", "B"})), 2u);
  EXPECT_FALSE(analyze::through_wrapper(frames));
  EXPECT_TRUE(analyze::through_wrapper(frames, found("zmalloc_for_keys", 6, {8, 100}, {""})));
}

TEST(Ownership, WhatMakesSomethingIsNone) {
  image::CallStack frames = {frame("malloc"), frame("alloc_tree"), frame("parse"), frame("main")};
  for (const analyze::Wrappers &wrappers :
       {found("alloc_tree", 2, {8, 100}, {""}),      // for few
        found("alloc_tree", 6, {32}, {""}),          // of one size
        found("alloc_tree", 6, {8, 100}, {"Tree"})}) // of one type
    EXPECT_EQ(analyze::owner(frames, wrappers), 1u);
  EXPECT_EQ(found("make_tree", 6, {8, 100}, {""}).names(), 0u); // no word of allocation
}

TEST(Ownership, WrappersAreNamedByTheUser) {
  analyze::Wrappers wrappers({"^pool_get$", "Maker::"});
  EXPECT_EQ(analyze::owner({frame("malloc"), frame("pool_get"), frame("Maker::run(int)"),
                            frame("parse"), frame("main")},
                           wrappers),
            3u);
  EXPECT_EQ(analyze::owner({frame("malloc"), frame("pool_get_all"), frame("main")}, wrappers), 1u);
  EXPECT_THROW(analyze::Wrappers({"("}), base::Failure);
}

} // namespace
