; An access counts in each block that it reaches: in all that it surely reaches, and in one more where only the
; address can tell. Alignment spares the question; neighbours from one base share it.
; RUN: %opt -passes=assay-instrument -S %s | FileCheck %s
; RUN: %opt -passes=assay-instrument -assay-naive -S %s | FileCheck --check-prefix=NAIVE %s
; RUN: %opt -passes=assay-instrument -assay-heap=2 -S %s | FileCheck --check-prefix=FINE %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: @aligned
; CHECK-COUNT-1: lshr i64
; CHECK-NOT: icmp
; CHECK: ret
; FINE-LABEL: @aligned
; FINE-COUNT-2: lshr i64
; FINE-NOT: icmp
; FINE: ret
define <8 x i64> @aligned(ptr %p) {
  %v = load <8 x i64>, ptr %p, align 64
  ret <8 x i64> %v
}

; The access says more than the base: eight from a multiple of eight.
; CHECK-LABEL: @aligned_by_itself
; CHECK-COUNT-1: lshr i64
; CHECK-NOT: icmp
; CHECK: ret
define i64 @aligned_by_itself(ptr %p) {
  %q = getelementptr i8, ptr %p, i64 4
  %v = load i64, ptr %q, align 8
  ret i64 %v
}

; CHECK-LABEL: @two_and_no_question
; CHECK-COUNT-2: lshr i64
; CHECK-NOT: icmp
; CHECK: ret
define <4 x i64> @two_and_no_question(ptr align 64 %p) {
  %q = getelementptr i8, ptr %p, i64 48
  %v = load <4 x i64>, ptr %q, align 16
  ret <4 x i64> %v
}

; CHECK-LABEL: @perhaps_two
; CHECK: lshr i64
; CHECK: [[OFFSET:%.*]] = and i64 %{{.*}}, 63
; CHECK-NEXT: [[OVER:%.*]] = icmp ugt i64 [[OFFSET]], 48
; CHECK-NEXT: br i1 [[OVER]]
; CHECK: add i64 %{{.*}}, 15
; CHECK: lshr i64
; CHECK: ret
; NAIVE-LABEL: @perhaps_two
; NAIVE: icmp ugt i64 %{{.*}}, 48
; NAIVE: ret
; FINE-LABEL: @perhaps_two
; FINE: and i64 %{{.*}}, 31
; FINE-NEXT: icmp ugt i64 %{{.*}}, 16
; FINE: ret
define <4 x i32> @perhaps_two(ptr %p) {
  %v = load <4 x i32>, ptr %p, align 4
  ret <4 x i32> %v
}

; CHECK-LABEL: @wide
; CHECK-COUNT-2: lshr i64
; CHECK: icmp ugt i64 %{{.*}}, 8
; CHECK: add i64 %{{.*}}, 119
; CHECK-COUNT-1: lshr i64
; CHECK: ret
define void @wide(ptr %p, <15 x i64> %v) {
  store <15 x i64> %v, ptr %p, align 8
  ret void
}

; CHECK-LABEL: @very_wide
; CHECK: call void @__assay_heap_masked(ptr %p, i64 1024, i64 1, i32 1)
; CHECK: ret
define void @very_wide(ptr %p, i8192 %v) {
  store i8192 %v, ptr %p, align 8
  ret void
}

; CHECK-LABEL: @neighbours
; CHECK-COUNT-3: load i64
; CHECK: icmp ugt i64 %{{.*}}, 44
; CHECK: br i1 %{{.*}}, label %[[APART:.*]], label %[[TOGETHER:.*]], !prof
; CHECK: [[APART]]:
; CHECK-COUNT-3: icmp ugt i64 %{{.*}}, 56
; CHECK: [[TOGETHER]]:
; CHECK-COUNT-1: lshr i64
; CHECK: add i32 %{{.*}}, 3
; CHECK: ret
; NAIVE-LABEL: @neighbours
; NAIVE-COUNT-3: icmp ugt i64 %{{.*}}, 56
; NAIVE-NOT: icmp
; NAIVE: ret
define void @neighbours(ptr %p) {
  %a = load i64, ptr %p, align 1
  %q = getelementptr i8, ptr %p, i64 5
  %b = load i64, ptr %q, align 1
  %r = getelementptr i8, ptr %p, i64 12
  %c = load i64, ptr %r, align 1
  ret void
}

; CHECK-LABEL: @neighbours_before
; CHECK: icmp ugt i64 %{{.*}}, 51
; CHECK: ret
define void @neighbours_before(ptr %p) {
  %q = getelementptr i8, ptr %p, i64 -40
  %a = load i64, ptr %q, align 1
  %r = getelementptr i8, ptr %p, i64 -35
  %b = load i64, ptr %r, align 1
  ret void
}

; More lanes than a word has bits.
; CHECK-LABEL: @many_lanes
; CHECK: call void @__assay_heap_masked(ptr %p, i64 4,
; CHECK: [[REST:%.*]] = getelementptr inbounds i8, ptr %p, i64 256
; CHECK: call void @__assay_heap_masked(ptr [[REST]], i64 4,
; CHECK-NOT: call void @__assay_heap_masked
; CHECK: ret
define void @many_lanes(ptr %p, <70 x i1> %mask) {
  %v = call <70 x i32> @llvm.masked.load.v70i32.p0(ptr align 4 %p, <70 x i1> %mask, <70 x i32> zeroinitializer)
  ret void
}
declare <70 x i32> @llvm.masked.load.v70i32.p0(ptr, <70 x i1>, <70 x i32>)
