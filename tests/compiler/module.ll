; What every instrumented module carries: the version in a symbol's name, an initializer before all others,
; its source file, and a flag that keeps a second pass (LTO) from counting twice.
; RUN: %opt -passes=assay-instrument,assay-instrument -S %s | FileCheck %s
source_filename = "unit.c"
target triple = "x86_64-pc-linux-gnu"

; CHECK: @__assay_unit = private constant {{.*}}unit.c{{.*}} section "assay_sites", align 8
; CHECK: @__assay_runtime_is_not_in_this_program_or_not_of_version_{{[0-9]+}} = external constant i32
; CHECK: @__assay_version_reference = linkonce_odr hidden constant ptr @__assay_runtime_is_not_in
; CHECK: @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @__assay_module_ctor, ptr @__assay_module_ctor }]
; CHECK-LABEL: @f
; CHECK-COUNT-1: lshr
; CHECK-NOT: lshr
; CHECK: ret
define void @f(ptr %p) {
  store i8 1, ptr %p
  ret void
}
; CHECK: define linkonce_odr hidden void @__assay_module_ctor()
