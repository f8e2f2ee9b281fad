; -fassay-objects=stack: a local variable of array or struct type begins at the function's entry and ends where it returns; its slot is
; nobody else's.
;
; RUN: %opt -passes=assay-instrument -assay-tools=8 -assay-objects=16 -S %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK: c"{{.*}}buffer in f
; CHECK-LABEL: @f(
; CHECK: call void @__assay_objects_local_begin(ptr %buffer, i64 32)
; CHECK-NOT: llvm.lifetime
; CHECK: icmp sge i8
; CHECK: call void @__assay_objects_local_end(ptr %buffer, i64 32, i32
; CHECK-NEXT: ret
define void @f(i64 %i) {
  %buffer = alloca [8 x i32]
  %scalar = alloca i32
  call void @llvm.lifetime.start.p0(ptr %buffer)
  %p = getelementptr i32, ptr %buffer, i64 %i
  store volatile i32 1, ptr %p, align 4
  call void @llvm.lifetime.end.p0(ptr %buffer)
  ret void
}

declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)
