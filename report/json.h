// The parts that every JSON document of Assay shares.
#pragma once

#include "analyze/finding.h"
#include "analyze/frame.h"
#include "analyze/workingset.h"
#include "profile/profile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace report {

using Json = nlohmann::ordered_json;

Json frame_json(const analyze::Frame &frame);
Json stack_json(const analyze::CallStack &frames);
Json program_json(const profile::Process &process, const std::string &build_id);
Json machine_json(const profile::Process &process);
Json losses_json(const std::map<uint32_t, uint64_t> &losses);
Json owner_json(const analyze::OwnerName &owner); // `kind`, `name`, `type`
Json findings_json(const std::vector<analyze::Finding> &findings);

// What a clock (AssayTimeUnit) counts, as documents name it: "wall_us", "cpu_us", "accesses", "mark".
const char *time_unit_name(uint32_t unit);

// Adds `accesses`, and `reads` and `writes` where the counters told them apart.
void put_accesses(Json &json, uint64_t reads, uint64_t writes, bool reads_apart);

// Indented; invalid UTF-8 from names is replaced, never an error.
std::string json_text(const Json &json);

// How many rows of a list are shown where `top` are asked for; 0: all.
inline size_t shown(size_t rows, unsigned top) {
  return top ? std::min<size_t>(top, rows) : rows;
}

// Prints many values into one string: with a string for each, half of the time goes to malloc.
class JsonPrinter {
public:
  // As json_text(); what stands on further lines is so far to the right. Until the next is printed.
  std::string_view print(const Json &json, size_t depth = 0) {
    text_.clear();
    serializer_.dump(json, true, false, 1, static_cast<unsigned>(depth));
    return text_;
  }

private:
  std::string text_;
  // What Json::dump() is made of, which takes no depth.
  nlohmann::detail::serializer<Json> serializer_{
      nlohmann::detail::output_adapter<char, std::string>(text_), ' ',
      Json::error_handler_t::replace};
};

// The same with a line end.
std::string document_text(const Json &document);

} // namespace report
