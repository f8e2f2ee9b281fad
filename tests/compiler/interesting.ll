; What is counted and what is not.
; RUN: %opt -passes=assay-instrument -S %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@global = global i64 0

; CHECK-LABEL: @refused
; CHECK-NOT: lshr
; CHECK: ret
define void @refused(ptr byval(i64) %argument, ptr addrspace(256) %segment, ptr %p) {
  %stack = alloca i64
  store i64 1, ptr %stack
  store i64 1, ptr @global
  store i64 1, ptr %argument
  store i64 1, ptr addrspace(256) %segment
  store i64 1, ptr %p, !nosanitize !0
  ret void
}

; CHECK-LABEL: @asked_not_to
; CHECK-NOT: lshr
; CHECK: ret
define void @asked_not_to(ptr %p) disable_sanitizer_instrumentation {
  store i64 1, ptr %p
  ret void
}

; An atomic read-modify-write is a read and a write.
; CHECK-LABEL: @atomics
; CHECK: atomicrmw
; CHECK: add i64 %{{.*}}, 1342177280
; CHECK: add i64 %{{.*}}, 1342177284
; CHECK: cmpxchg
; CHECK: add i64 %{{.*}}, 1342177280
; CHECK: add i64 %{{.*}}, 1342177284
define void @atomics(ptr %p, ptr %q) {
  %a = atomicrmw add ptr %p, i64 1 seq_cst
  %b = cmpxchg ptr %q, i64 1, i64 2 seq_cst seq_cst
  ret void
}

; CHECK-LABEL: @ranges
; CHECK: call void @llvm.memcpy
; CHECK: call void @__assay_heap_range(ptr %q, i64 %n, i32 0)
; CHECK: call void @__assay_heap_range(ptr %p, i64 %n, i32 1)
; CHECK: call void @llvm.memset
; CHECK: call void @__assay_heap_range(ptr %p, i64 %n, i32 1)
; CHECK: call void @llvm.memset{{.*}}i64 8
; CHECK-NEXT: ptrtoint ptr %p
define void @ranges(ptr %p, ptr %q, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 8, i1 false)
  ret void
}

; CHECK-LABEL: @masked
; CHECK: call <4 x i32> @llvm.masked.load
; CHECK: [[BITS:%.*]] = bitcast <4 x i1> %mask to i4
; CHECK: [[WIDE:%.*]] = zext i4 [[BITS]] to i64
; CHECK: call void @__assay_heap_masked(ptr %p, i64 4, i64 [[WIDE]], i32 0)
define <4 x i32> @masked(ptr %p, <4 x i1> %mask) {
  %v = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr align 4 %p, <4 x i1> %mask, <4 x i32> zeroinitializer)
  ret <4 x i32> %v
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare <4 x i32> @llvm.masked.load.v4i32.p0(ptr, <4 x i1>, <4 x i32>)
!0 = !{}

; Functions of libc touch what they find; the program's own function of that name does not count twice.
; CHECK-LABEL: @strings
; CHECK: call i64 @strlen
; CHECK-NEXT: call void @__assay_heap_string(ptr %s, i64 -1, i32 0)
; CHECK: call i32 @strncmp
; CHECK-NEXT: call void @__assay_heap_compare(ptr %s, ptr %t, i64 %n, i32 4)
; CHECK: call i32 @memcmp
; CHECK-NEXT: call void @__assay_heap_compare(ptr %s, ptr %t, i64 %n, i32 0)
; CHECK: call ptr @strcpy
; CHECK: call void @__assay_heap_string(ptr %t, i64 -1, i32 0)
; CHECK: call void @__assay_heap_string(ptr %s, i64 -1, i32 1)
define void @strings(ptr %s, ptr %t, i64 %n) {
  %a = call i64 @strlen(ptr %s)
  %b = call i32 @strncmp(ptr %s, ptr %t, i64 %n)
  %c = call i32 @memcmp(ptr %s, ptr %t, i64 %n)
  %d = call ptr @strcpy(ptr %s, ptr %t)
  ret void
}
declare i64 @strlen(ptr)
declare i32 @strncmp(ptr, ptr, i64)
declare i32 @memcmp(ptr, ptr, i64)
declare ptr @strcpy(ptr, ptr)
