// What a finding of any tool is worth: the share of the run that acting on it could save
// (analyze/joined_findings.cc says why).
#pragma once

#include "analyze/joined.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace analyze {

class JoinedWorth {
public:
  // The result, complete but for its findings, must live as long.
  explicit JoinedWorth(const JoinedResult &result);

  // 0 to 1.
  double of(const Finding &finding) const;

  // The rows about an allocation site, of the subject's type if that is there, and about a type; null: there is none.
  const JoinedRow *site_row(const Subject &about) const;
  const JoinedRow *type_row(const std::string &type) const;
  // Whether it has a row of just this site and type; of a finding about types alone, of the type.
  bool has_row(const Subject &about) const;
  // How many bytes of it are needed at a time; nothing if no tool has seen it.
  std::optional<double> bytes_at_a_time(const JoinedRow *row) const;
  // The level of the smallest cache that holds what is needed of it at a time: 1, 2, 3; 0: none of these.
  int cache_of(const JoinedRow *row) const;

private:
  uint64_t cache_bytes(int level) const;
  double share_of_run(double us) const;
  double share_of_peak(const JoinedRow *row) const;

  const JoinedResult &result_;
  std::map<std::string, size_t> types_;
  std::map<std::pair<std::string, std::string>, size_t> sites_; // by site and type, and by site
};

} // namespace analyze
