# lit configuration of all suites. Substitutions:
#   %assay %assay-cc %assay-c++   the programs of the build
#   %clang %clang++ %opt          of LLVM 22; %opt loads the plugin
#   %facts JSON FACT…             tests/oracle/facts.py: every fact must hold in the JSON report
#   %oracle                       tests/oracle/
#   %fresh DIR                    makes DIR anew and empty
# Features say what a test needs (REQUIRES: dhat). With ASSAY_REQUIRE=all a missing one is a failure.
# A test that can ask the same of more inputs (seeds, compilers, whole libraries) does so under `%if thorough %{ … %}`: `--param thorough=1`.
# The nightly test lit.thorough runs these tests so; `./dev test` runs them with the part of the inputs that reaches each behaviour.
import importlib.util
import os
import shutil
import subprocess

import lit.formats

config.name = "assay"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".test", ".ll"]
config.excludes = ["Inputs"]

site = lit_config.params.get("site")
lit_config.load_config(config, site)
build, source, llvm = config.assay_build, config.assay_source, config.llvm_tools
config.test_source_root = os.path.join(source, "tests")
config.test_exec_root = os.path.join(build, "tests", "out")
os.makedirs(config.test_exec_root, exist_ok=True)

# The suite runtime/ runs once for each set of tools: `--param tools=heap,workingset` builds its programs for these. Facts are
# of the heap's reports, so without the heap they are not asked, and only what programs do and print is.
tools = lit_config.params.get("tools", "")
if tools:
    config.test_exec_root = os.path.join(config.test_exec_root, tools)
    os.makedirs(config.test_exec_root, exist_ok=True)
chosen = " -fassay=" + tools if tools else ""
if not tools or "heap" in tools.split(","):
    config.available_features.add("heap")
if tools in ("", "heap"):
    config.available_features.add("heap_alone")
if tools:
    config.environment["ASSAY_TEST_TOOLS"] = tools
    if not {"heap", "workingset", "objects"} & set(tools.split(",")):  # only these profiles grow with what a program allocates
        config.available_features.add("small_profiles")
    if "objects" in tools.split(","):  # its shadow fills what lies below 2 GiB
        config.environment["ASSAY_TEST_LOW"] = ""


def have(feature, condition):
    if condition:
        config.available_features.add(feature)
    elif os.environ.get("ASSAY_REQUIRE") == "all":
        lit_config.fatal("this machine lacks what tests need: " + feature)


# What hangs is ended and named, with what it has printed; the longest test takes a tenth of this.
have("psutil", importlib.util.find_spec("psutil"))
if "psutil" in config.available_features:
    lit_config.maxIndividualTestTime = 7200 if lit_config.params.get("thorough") else 900

if lit_config.params.get("thorough"):
    config.available_features.add("thorough")
    config.test_exec_root = os.path.join(config.test_exec_root, "thorough")  # may run beside the others
    os.makedirs(config.test_exec_root, exist_ok=True)

programs = os.path.join(build, "bin")
config.environment["PATH"] = os.pathsep.join([programs, llvm, os.environ["PATH"]])
config.environment.pop("ASSAY_OPTIONS", None)
config.environment["LC_ALL"] = "C.UTF-8"
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")  # moved code: libc's is made once for all tests

python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"
plugin = os.path.join(build, "lib/assay/libassay_pass.so")
for name, value in [
    ("%assay-c\\+\\+", os.path.join(programs, "assay-c++") + chosen),
    ("%assay-cc", os.path.join(programs, "assay-cc") + chosen),
    ("%assay", os.path.join(programs, "assay")),
    ("%clang\\+\\+", "clang++-22"),
    ("%clang", "clang-22"),
    ("%opt", os.path.join(llvm, "opt") + " -load-pass-plugin=" + plugin + " -load=" + plugin),
    ("%facts", python + " " + os.path.join(source, "tests/oracle/facts.py") if "heap" in config.available_features else "true"),
    ("%python", python),
    ("%oracle", os.path.join(source, "tests/oracle")),
    ("%source", source),
    ("%build", build),
    ("%fresh", "rm -rf %t.dir && mkdir -p"),
]:
    config.substitutions.append((name, value))

have("valgrind", shutil.which("valgrind"))
have("ptrace", subprocess.run([python, os.path.join(source, "tests/oracle/needs.py"), "ptrace", "--", "true"], stdout=subprocess.DEVNULL).returncode == 0)
have("bpf", os.geteuid() == 0 and os.access("/sys/kernel/btf/vmlinux", os.R_OK))
have("root", os.geteuid() == 0)
# A mount in namespaces of users, mounts and processes of its own, as an ordinary user.
apart = ["unshare", "-rmpf", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
have("namespaces", shutil.which("unshare") and subprocess.run(apart, stderr=subprocess.DEVNULL).returncode == 0)
have("gcc", shutil.which("gcc"))
have("sources", os.path.exists("/usr/bin/apt-get"))
have("reorder", shutil.which("clang-reorder-fields-22"))
