// How field accesses of several profiles add up: by field, function and line; sets and sharing by
// what they are of.
#pragma once

#include "profile/merge.h"
#include "profile/tool.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace profile {

class FieldsSums : public ToolSums {
public:
  RecordId record(Profile &profile, const Record &record);
  void add(Profile &profile, const FieldUse &use);
  void add(Profile &profile, const FieldSet &set);
  void add(Profile &profile, const FieldSharing &sharing);
  void add(Profile &profile, const FieldSampling &sampling);
  void add(Profile &into, const Profile &other, const NewIds &ids) override;
  void finish(Profile &profile, const NewIds &ids) override;

private:
  // The sum of this key, to which what is new is to be added; null where there was none: then the new one is it.
  template <typename Key, typename T>
  static T *known_sum(std::map<Key, size_t> &index, const std::type_identity_t<Key> &key,
                      std::vector<T> &all, const T &new_one) {
    auto [known, is_new] = index.try_emplace(key, all.size());
    if (!is_new)
      return &all[known->second];
    all.push_back(new_one);
    return nullptr;
  }

  std::map<uint64_t, size_t> records_; // by hash
  std::map<std::tuple<RecordId, uint32_t, uint32_t, ModuleId, std::string, uint32_t>, size_t> uses_;
  std::map<std::tuple<RecordId, uint32_t, std::vector<uint32_t>>, size_t> sets_;
  std::map<std::tuple<RecordId, uint32_t, RecordId, uint32_t>, size_t> sharing_;
  std::map<RecordId, size_t> sampling_;
};

} // namespace profile
