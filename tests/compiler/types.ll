; The type of an allocation waits for the allocation function in a thread-local, and is taken back.
; RUN: %opt -passes=assay-tags,assay-instrument -S %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
%struct.Node = type { ptr, i64, i32 }

; CHECK: @__assay_type_{{.*}} = linkonce_odr hidden constant {{.*}}Node{{.*}} section "assay_sites", comdat, align 8
; CHECK: @__assay_next_type = external thread_local(initialexec) global i32

declare ptr @malloc(i64) allockind("alloc,uninitialized") allocsize(0)
declare ptr @opaque(i64)

; CHECK-LABEL: @by_token
; CHECK: [[SLOT:%.*]] = call {{.*}}ptr @llvm.threadlocal.address.p0(ptr {{.*}}@__assay_next_type)
; CHECK: store volatile i32 {{[^0].*}}, ptr [[SLOT]]
; CHECK-NEXT: call ptr @malloc(i64 24)
; CHECK: store volatile i32 0
define ptr @by_token() sanitize_alloc_token {
  %p = call ptr @malloc(i64 24), !alloc_token !0
  ret ptr %p
}

; CHECK-LABEL: @by_first_use
; CHECK: store volatile i32 {{[^0].*}}, ptr
; CHECK-NEXT: call ptr @malloc(i64 24)
define ptr @by_first_use() {
  %p = call ptr @malloc(i64 24)
  %key = getelementptr %struct.Node, ptr %p, i32 0, i32 1
  store i64 1, ptr %key
  ret ptr %p
}

; An allocation is no tail call: its function would be missing in the stack.
; CHECK-LABEL: @tail
; CHECK: notail call ptr @malloc
define ptr @tail() {
  %p = tail call ptr @malloc(i64 24)
  ret ptr %p
}

; CHECK-LABEL: @unknown
; CHECK-NOT: store {{.*}}i32
; CHECK: ret
define ptr @unknown() {
  %p = call ptr @malloc(i64 24)
  %q = call ptr @opaque(i64 24)
  ret ptr %p
}

; CHECK-NOT: sanitize_alloc_token
!0 = !{!"Node", i1 true}
