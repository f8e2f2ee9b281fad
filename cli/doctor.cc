// `assay doctor`: what works on this machine, and the command that would mend the rest.
//
// Each check is a function that looks and answers; none changes anything. A check that `assay heap`
// needs makes the exit status 1 when it is missing; others belong to tools that sample unmodified
// programs, and are only told.

#include "cli/doctor.h"
#include "cli/command.h"
#include "cli/output.h"
#include "report/json.h"

#include <memory>

namespace cli {
namespace {

struct Check {
  const char *name;
  bool needed_for_heap;
  Health (*look)();
};

const char *state_name(Health::State state) {
  return state == Health::ok ? "ok" : state == Health::missing ? "missing" : "limited";
}

constexpr Check kChecks[] = {
    {"clang", true, clang_health},
    {"plugin", true, plugin_health},
    {"runtime", true, runtime_health},
    {"trial", true, trial_health},
    {"symbolizer", true, symbolizer_health},
    {"address space", true, address_space_health},
    {"overcommit", true, overcommit_health},
    {"limits", false, limits_health},
    {"/proc", false, proc_health},
    {"disk", false, disk_health},
    {"reordering", false, reordering_health},
    {"perf events", false, perf_events_health},
    {"bpf", false, bpf_health},
    {"values", false, values_health},
    {"values kernel", false, values_kernel_health},
    {"values upcall", false, values_upcall_health},
    {"values timer", false, values_timer_health},
    {"trace", false, trace_health},
    {"ptrace", false, ptrace_health},
};

int diagnose(const AnswerOptions &options) {
  check_format(options);
  bool heap_works = true;
  std::string text;
  report::Json list = report::Json::array();
  for (const Check &check : kChecks) {
    Health health = check.look();
    heap_works &= !check.needed_for_heap || health.state != Health::missing;
    text += fmt::format("{:<8} {:<14} {}\n", state_name(health.state), check.name, health.found);
    if (!health.remedy.empty())
      text += fmt::format("{:<23}mend: {}\n", "", health.remedy);
    list.push_back({{"name", check.name},
                    {"state", state_name(health.state)},
                    {"found", health.found},
                    {"remedy", health.remedy},
                    {"needed_for_heap", check.needed_for_heap}});
  }
  text += heap_works ? "\nassay heap works on this machine\n"
                     : "\nassay heap does not work yet: mend what is missing above\n";
  report::Json document = {
      {"schema", "assay.doctor/1"}, {"heap_works", heap_works}, {"checks", list}};
  if (options.is_text())
    write_output(options.output, text);
  else
    write_document(options, document);
  return heap_works ? 0 : 1;
}

} // namespace

Action define_doctor(CommandLine line) {
  auto options = std::make_shared<AnswerOptions>();
  add_format_options(line, *options);
  line.set_footer("\nExamples:\n  assay doctor\n  assay doctor --json\n");
  return [options](const Words &) { return diagnose(*options); };
}

} // namespace cli
