// Evaluated on the very document that --json prints, so that whoever sees a number there can gate on it.
// A JSONPath library was refused: the subset here is what people write in CI, and selectors by type or
// function are what JSONPath lacks.

#include "report/condition.h"

#include "analyze/place.h"
#include "base/fail.h"
#include "base/units.h"
#include "report/key_measure.h"

#include <algorithm>

namespace report {
namespace {

std::string trimmed(const std::string &text) {
  size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

bool is(const Json &element, const char *key, const std::string &word) {
  return element.contains(key) && element[key].is_string() &&
         element[key].get<std::string>() == word;
}

// The frame of the code that owns an element: itself, or one of the element's stack.
const Json *owner_of(const Json &element) {
  const auto owner = element.find("owner"), stack = element.find("stack"),
             site = element.find("site");
  if (owner != element.end() && owner->is_object())
    return &*owner;
  if (owner != element.end() && owner->is_number_unsigned() && stack != element.end() &&
      stack->is_array() && owner->get<size_t>() < stack->size())
    return &(*stack)[owner->get<size_t>()];
  return site != element.end() && site->is_object() ? &*site : nullptr;
}

bool is_owner(const Json &frame, const std::string &word) {
  const auto function = frame.find("function");
  return function != frame.end() && function->is_string() &&
         (*function == word ||
          analyze::short_name(function->get_ref<const std::string &>()) == word);
}

// Whether a text within it has the word; of a frame its function.
bool holds_word(const Json &value, const std::string &word) {
  if (value.is_string())
    return value.get_ref<const std::string &>().find(word) != std::string::npos;
  if (value.is_object() && value.contains("function"))
    return holds_word(value["function"], word);
  if (value.is_structured())
    return std::any_of(value.begin(), value.end(),
                       [&](const Json &part) { return holds_word(part, word); });
  return value.dump().find(word) != std::string::npos;
}

bool selected(const Json &element, const std::string &selector) {
  size_t op = selector.find_first_of("=~");
  if (op == std::string::npos) {
    const Json *owner = owner_of(element);
    return is(element, "name", selector) || is(element, "type", selector) ||
           is(element, "id", selector) || (owner && is_owner(*owner, selector));
  }
  std::string key = selector.substr(0, op), word = selector.substr(op + 1);
  if (!element.contains(key))
    return false;
  const Json &value = element[key];
  if (selector[op] == '=')
    return (value.is_string() ? value.get<std::string>() : json_text(value)) == word;
  if (key == "owner" || key == "site")
    if (const Json *owner = owner_of(element))
      return holds_word(*owner, word);
  return holds_word(value, word);
}

struct Step {
  std::string key, selector;
  bool selects = false;
};

// Where the bracket closes that opens here: names have brackets too (`text[abi:cxx11]`).
size_t closing_bracket(const std::string &path, size_t open) {
  size_t depth = 0;
  for (size_t at = open; at < path.size(); at++) {
    depth += path[at] == '[';
    if (path[at] == ']' && --depth == 0)
      return at;
  }
  return std::string::npos;
}

std::vector<Step> steps_of(const std::string &path) {
  std::vector<Step> steps;
  for (size_t at = 0; at < path.size();) {
    size_t end = path.find_first_of(".[", at);
    Step step;
    step.key = path.substr(at, end == std::string::npos ? end : end - at);
    if (step.key.empty())
      base::fail("'{}': a key is missing in this path", path);
    at = end == std::string::npos ? path.size() : end;
    if (at < path.size() && path[at] == '[') {
      const size_t close = closing_bracket(path, at);
      if (close == std::string::npos)
        base::fail("'{}': a ']' is missing in this path", path);
      step.selects = true;
      step.selector = path.substr(at + 1, close - at - 1);
      at = close + 1;
    }
    if (at < path.size() && path[at] != '.')
      base::fail("'{}': after ']' comes '.' in a path", path);
    at++;
    steps.push_back(std::move(step));
  }
  if (steps.empty())
    base::fail("'{}': a key is missing in this path", path);
  return steps;
}

// Collects what a path leads to. Elements of lists are looked at one by one, since there may be more of them than
// fit into memory.
class Walk {
public:
  explicit Walk(const std::string &path)
      : steps_(steps_of(path)), arrived_(steps_.size() + 1), passed_(steps_.size()) {}

  void from(const Document &report) {
    arrived_[0]++;
    for (const Document::Part &part : report.parts())
      if (part.key == steps_[0].key) {
        passed_[0]++;
        if (const auto *list = std::get_if<Document::List>(&part.value))
          through(*list);
        else
          through(std::get<Json>(part.value), 0);
      }
  }

  // Whether the keys exist at all, so that a typing error is told from a selector that keeps nothing: what a
  // selector emptied cannot be judged.
  bool known() const {
    for (size_t step = 0; step < steps_.size(); step++)
      if (arrived_[step] && !passed_[step])
        return false;
    return true;
  }
  size_t found() const { return arrived_.back(); }
  // If all that was found is one array: how many elements it has.
  std::optional<size_t> elements() const { return found() == 1 ? elements_ : std::nullopt; }
  const std::vector<double> &numbers() const { return numbers_; }
  // What was found first that is not a number; null if all are.
  const char *other() const { return other_; }
  // The key of a list that the path walks into without selecting of it; empty if there is none.
  const std::string &list() const { return list_; }

private:
  // From the value of a step's key.
  void through(const Json &child, size_t step) {
    if (!steps_[step].selects)
      arrive(child, step + 1);
    else if (child.is_array())
      for (const Json &element : child)
        select(element, step);
  }
  void through(const Document::List &list) {
    if (steps_[0].selects) {
      for (size_t index = 0; index < list.size; index++)
        select(list.element(index), 0);
    } else {
      arrived_[1]++;
      elements_ = list.size;
      other_ = "array";
      if (steps_.size() > 1)
        list_ = steps_[0].key;
    }
  }
  void select(const Json &element, size_t step) {
    if (element.is_object() && selected(element, steps_[step].selector))
      arrive(element, step + 1);
  }
  void arrive(const Json &value, size_t step) {
    arrived_[step]++;
    if (step == steps_.size())
      return take(value);
    if (value.is_array() && list_.empty())
      list_ = steps_[step - 1].key;
    if (!value.is_object() || !value.contains(steps_[step].key))
      return;
    passed_[step]++;
    through(value[steps_[step].key], step);
  }
  void take(const Json &value) {
    if (value.is_number())
      numbers_.push_back(value.get<double>());
    else if (!other_)
      other_ = value.type_name();
    if (value.is_array())
      elements_ = value.size();
  }

  std::vector<Step> steps_;
  std::vector<size_t> arrived_,
      passed_; // values at each step (the last: found), those with its key
  std::vector<double> numbers_;
  std::optional<size_t> elements_;
  const char *other_ = nullptr;
  std::string list_;
};

// Do the numbers of several elements add up, or are the elements alternatives?
bool adds_up(const Document &report, const std::string &path) {
  for (const Document::Part &part : report.parts())
    if (part.adding_key && path.starts_with(part.key + ".") &&
        !path.starts_with(part.key + "." + *part.adding_key + "["))
      return false;
  if (path.find(".most_") != std::string::npos)
    return false;
  if (path.ends_with("byte_us"))
    return true;
  constexpr const char *kNoParts[] = {"_share", ".min", ".max", "_percent", "_us", ".peak_bytes"};
  return std::none_of(std::begin(kNoParts), std::end(kNoParts),
                      [&](const char *ending) { return path.ends_with(ending); });
}

bool compare(double a, const std::string &op, double b) {
  return op == "=="   ? a == b
         : op == "!=" ? a != b
         : op == "<"  ? a < b
         : op == "<=" ? a <= b
         : op == ">"  ? a > b
                      : a >= b;
}

} // namespace

Condition parse_condition(const std::string &text) {
  size_t depth = 0, at = 0;
  for (; at < text.size(); at++) { // operators inside [] belong to selectors
    depth += text[at] == '[';
    depth -= text[at] == ']' && depth;
    if (depth == 0 && std::string("=!<>").find(text[at]) != std::string::npos)
      break;
  }
  size_t op_end = at + (at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1);
  Condition c = {text, trimmed(text.substr(0, at)),
                 text.substr(std::min(at, text.size()), op_end - at), 0};
  if (at >= text.size() || c.path.empty() || c.op == "=" || c.op == "!")
    base::fail(
        "'{}' is no condition; write PATH OP NUMBER, for example 'totals.peak_bytes > 64MiB'",
        text);
  try {
    const std::string written = trimmed(text.substr(op_end));
    const base::Number number = base::parse_number(written);
    check_comparison(c.path, c.op, number, written);
    c.number = number.value;
  } catch (const base::Failure &failure) {
    base::fail("'{}': {}", text, failure.what());
  }
  return c;
}

std::vector<double> numbers_at(const Document &report, const std::string &path) {
  bool counts = path.starts_with("len(") && path.ends_with(")");
  Walk walk(counts ? path.substr(4, path.size() - 5) : path);
  walk.from(report);
  if (!walk.list().empty())
    base::fail(
        "'{}': {} is a list; select of it by a name or a key, as in {}[NAME] or {}[KEY=WORD]", path,
        walk.list(), walk.list(), walk.list());
  if (!walk.known())
    base::fail("'{}': the report has no such key; `--json` shows those there are", path);
  if (counts)
    return {double(walk.elements().value_or(walk.found()))};
  if (walk.other() && std::string_view(walk.other()) == "null")
    base::fail("'{}': this run has not measured it", path);
  if (walk.other())
    base::fail("'{}': this is not a number in the report, but {}", path, walk.other());
  if (walk.numbers().size() > 1 && adds_up(report, path)) {
    double sum = 0;
    for (double n : walk.numbers())
      sum += n;
    return {sum};
  }
  return walk.numbers();
}

std::optional<double> holds(const Condition &condition, const Document &report) {
  for (double n : numbers_at(report, condition.path))
    if (compare(n, condition.op, condition.number))
      return n;
  return std::nullopt;
}

} // namespace report
