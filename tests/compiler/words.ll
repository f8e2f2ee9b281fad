; Which words of 4 bytes are checked, with which loads, and how they are marked. Checks come behind the accesses.
;
; RUN: %opt -passes=assay-instrument -assay-tools=8 -S %s | FileCheck %s
; RUN: %opt -passes=assay-instrument -assay-tools=8 -assay-naive -S %s | FileCheck --check-prefix=NAIVE %s
; RUN: %opt -passes=assay-instrument -assay-tools=8 -assay-objects=1 -S %s | FileCheck --check-prefix=COUNT %s
; RUN: %opt -passes=assay-instrument -assay-tools=8 -assay-objects=2 -S %s | FileCheck --check-prefix=BITS %s
; RUN: %opt -passes=assay-instrument -assay-tools=8 -assay-objects=32 -S %s | FileCheck --check-prefix=DYNAMIC %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@table = global [64 x i32] zeroinitializer

; One word: its byte at (address >> 2) + 0x60000000; the mark is the sign.
; CHECK-LABEL: @one(
; CHECK: store i32 1, ptr %p
; CHECK: lshr i64 {{.*}}, 2
; CHECK: add i64 {{.*}}, 1610612736
; CHECK: [[MARKS:%.*]] = load i8, {{.*}}!nosanitize
; CHECK: icmp sge i8 [[MARKS]], 0
; CHECK: or i8 {{.*}}, -128
; CHECK: store i8
; COUNT-LABEL: @one(
; COUNT: and i64 {{.*}}, 17592186044412
; COUNT: add i64 {{.*}}, 17593796657152
; COUNT: add i32 {{.*}}, 1
; COUNT-NOT: br i1
; COUNT: ret
; BITS-LABEL: @one(
; BITS: lshr i64 {{.*}}, 3
; BITS: shl i16 15,
; BITS: atomicrmw or ptr
; DYNAMIC-LABEL: @one(
; DYNAMIC: load i64, ptr @__assay_words_base
define void @one(ptr %p) {
  store i32 1, ptr %p, align 4
  ret void
}

; Wide accesses read the bytes of all their words at once.
; CHECK-LABEL: @wide(
; CHECK: load i16, {{.*}}!nosanitize
; CHECK: and i16 {{.*}}, -32640
; CHECK: store i16
; CHECK: load i32, {{.*}}!nosanitize
; CHECK: and i32 {{.*}}, -2139062144
; CHECK: load i64, {{.*}}!nosanitize
; CHECK: and i64 {{.*}}, -9187201950435737472
define void @wide(ptr %p, ptr %q, ptr %r) {
  store i64 1, ptr %p, align 8
  call void @other()
  store <4 x i32> zeroinitializer, ptr %q, align 16
  call void @other()
  store <8 x i32> zeroinitializer, ptr %r, align 32
  ret void
}

; Of words near each other one check, with a mask of those that are accessed; the ones between are not marked.
; CHECK-LABEL: @holes(
; CHECK: load i32, {{.*}}!nosanitize
; CHECK: and i32 {{.*}}, 8388736
; CHECK: br i1
; CHECK-COUNT-2: or i8 {{.*}}, -128
; CHECK-NOT: br i1
; CHECK: ret
; NAIVE-LABEL: @holes(
; NAIVE-COUNT-2: icmp sge i8
; NAIVE: ret
define void @holes(ptr %p) {
  %b = getelementptr i8, ptr %p, i64 8
  store i32 1, ptr %p, align 4
  store i32 1, ptr %b, align 4
  ret void
}

; Unaligned: two words surely, and that of the last byte.
; CHECK-LABEL: @unaligned(
; CHECK: load i16, {{.*}}!nosanitize
; CHECK: load i8, {{.*}}!nosanitize
; CHECK: br i1
; CHECK-NOT: br i1
; CHECK: ret
define void @unaligned(ptr %p) {
  store i64 1, ptr %p, align 1
  ret void
}

; What was checked is not checked again, unless a call lies between.
; CHECK-LABEL: @again(
; CHECK-COUNT-1: icmp sge i8
; CHECK: call void @other()
; CHECK-COUNT-1: icmp sge i8
; CHECK-NOT: icmp sge i8
; CHECK: ret
; COUNT-LABEL: @again(
; COUNT: add i32 {{.*}}, 2
; COUNT: call void @other()
; COUNT: add i32 {{.*}}, 1
define i32 @again(ptr %p) {
  store i32 1, ptr %p, align 4
  %v = load i32, ptr %p, align 4
  call void @other()
  store i32 2, ptr %p, align 4
  ret i32 %v
}

; Globals are objects; local variables are not, and constants of no object neither.
; CHECK-LABEL: @kinds(
; CHECK-COUNT-1: icmp sge i8
; CHECK-NOT: icmp sge i8
; CHECK: ret
define void @kinds() {
  %local = alloca [8 x i32]
  store volatile i32 1, ptr %local, align 4
  store i32 1, ptr @table, align 4
  ret void
}

; Calls of memory functions go to the runtime; short constant ones are checked inline.
; CHECK-LABEL: @ranges(
; CHECK: call void @__assay_objects_range(ptr %p, i64 %n)
; CHECK: call void @other()
; CHECK-NOT: __assay_objects_range
; CHECK: load i32, {{.*}}!nosanitize
; CHECK: ret
define void @ranges(ptr %p, i64 %n) {
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  call void @other()
  call void @llvm.memset.p0.i64(ptr align 8 %p, i8 0, i64 16, i1 false)
  ret void
}

declare void @other()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
