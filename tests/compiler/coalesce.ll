; Accesses that surely lie in one 64-byte block share an addition; calls that may look end the sharing.
; RUN: %opt -passes=assay-instrument -S %s | FileCheck %s
; RUN: %opt -passes=assay-instrument -assay-naive -S %s | FileCheck --check-prefix=NAIVE %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; Two halves of an aligned eight, read twice and written once: one reads += 2, one writes += 1.
; CHECK-LABEL: @same_granule
; CHECK: load i32, ptr %p
; CHECK: store i32 1, ptr %q
; CHECK: load i32, ptr %q
; CHECK-NEXT: ptrtoint ptr %q
; CHECK-NEXT: lshr i64 %{{.*}}, 3
; CHECK-NEXT: and i64 %{{.*}}, -8
; CHECK-NEXT: add i64 %{{.*}}, 1342177280
; CHECK: add i32 %{{.*}}, 2
; CHECK: add i64 %{{.*}}, 1342177284
; CHECK: add i32 %{{.*}}, 1
; CHECK-NOT: lshr
; CHECK: ret
; NAIVE-LABEL: @same_granule
; NAIVE-COUNT-3: lshr i64
; NAIVE: ret
define i32 @same_granule(ptr align 8 %p) {
  %a = load i32, ptr %p, align 8
  %q = getelementptr i8, ptr %p, i64 4
  store i32 1, ptr %q, align 4
  %b = load i32, ptr %q, align 4
  %sum = add i32 %a, %b
  ret i32 %sum
}

; Eight bytes apart from a base that is only 8-aligned: perhaps two blocks, so two additions.
; CHECK-LABEL: @two_granules
; CHECK-COUNT-2: lshr i64
; CHECK: ret
define void @two_granules(ptr align 8 %p) {
  store i64 1, ptr %p, align 8
  %q = getelementptr i8, ptr %p, i64 8
  store i64 1, ptr %q, align 8
  ret void
}

declare void @may_free(ptr)
declare i32 @pure() nofree nosync nounwind willreturn memory(none)

; CHECK-LABEL: @call_between
; CHECK: store i64 1
; CHECK: lshr i64
; CHECK: call void @may_free
; CHECK: store i64 2
; CHECK: lshr i64
; CHECK: ret
define void @call_between(ptr align 8 %p) {
  store i64 1, ptr %p, align 8
  call void @may_free(ptr null)
  store i64 2, ptr %p, align 8
  ret void
}

; CHECK-LABEL: @harmless_call_between
; CHECK: call i32 @pure
; CHECK-COUNT-1: lshr i64
; CHECK: add i32 %{{.*}}, 2
; CHECK-NOT: lshr
; CHECK: ret
define void @harmless_call_between(ptr align 8 %p) {
  store i64 1, ptr %p, align 8
  %x = call i32 @pure()
  store i64 2, ptr %p, align 8
  ret void
}
