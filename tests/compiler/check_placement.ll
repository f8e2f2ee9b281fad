; Where the checks of the working set go: the fewest that cover every line that is touched, behind its accesses.
; RUN: %opt -passes=assay-instrument -assay-tools=2 -S %s | FileCheck %s
; RUN: %opt -passes=assay-instrument -assay-tools=2 -assay-naive -S %s | FileCheck --check-prefix=NAIVE %s
; RUN: %opt -passes=assay-instrument -assay-tools=2 -assay-workingset=4 -S %s | FileCheck --check-prefix=CLOCK %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; One aligned line, one check, behind the last of its accesses.
; CHECK-LABEL: @same_line(
; CHECK: store i32 3
; CHECK-NEXT: ptrtoint ptr %b
; CHECK-COUNT-1: call preserve_mostcc void @__assay_workingset_touch
; CHECK-NOT: __assay_workingset_touch
; CHECK: ret
; NAIVE-LABEL: @same_line(
; NAIVE-COUNT-3: icmp sge i8
; NAIVE-NOT: icmp sge i8
; NAIVE: ret
define void @same_line(ptr %p) {
  %a = getelementptr i8, ptr %p, i64 4
  %b = getelementptr i8, ptr %p, i64 60
  store i32 1, ptr %p, align 64
  store i32 2, ptr %a, align 4
  store i32 3, ptr %b, align 4
  ret void
}

; Perhaps two lines: both bytes are asked for, with one branch. Nothing between two bytes at most a line apart is.
; CHECK-LABEL: @two_lines(
; CHECK: br i1
; CHECK-COUNT-2: call preserve_mostcc void @__assay_workingset_touch
; CHECK-NOT: __assay_workingset_touch
; CHECK: ret
; NAIVE-LABEL: @two_lines(
; NAIVE-COUNT-2: icmp sge i8
; NAIVE-NOT: icmp sge i8
; NAIVE: ret
define void @two_lines(ptr %p) {
  %b = getelementptr i8, ptr %p, i64 60
  store i32 1, ptr %p, align 4
  store i32 3, ptr %b, align 4
  ret void
}

; Two lines, surely: one branch for both.
; CHECK-LABEL: @far(
; CHECK: br i1
; CHECK-COUNT-2: call preserve_mostcc void @__assay_workingset_touch
; CHECK-NOT: __assay_workingset_touch
; CHECK: ret
; NAIVE-LABEL: @far(
; NAIVE-COUNT-2: icmp sge i8
; NAIVE-NOT: icmp sge i8
; NAIVE: ret
define void @far(ptr %p) {
  %b = getelementptr i8, ptr %p, i64 640
  store i32 1, ptr %p, align 4
  store i32 3, ptr %b, align 4
  ret void
}

; A call may take time: the line is checked again behind it.
; CHECK-LABEL: @call_between(
; CHECK-COUNT-2: call preserve_mostcc void @__assay_workingset_touch
; CHECK-NOT: __assay_workingset_touch
; CHECK: ret
; NAIVE-LABEL: @call_between(
; NAIVE-COUNT-2: icmp sge i8
; NAIVE-NOT: icmp sge i8
; NAIVE: ret
define void @call_between(ptr %p) {
  store i32 1, ptr %p, align 4
  call void @other()
  store i32 3, ptr %p, align 4
  ret void
}

; What was checked on every path is not checked again.
; CHECK-LABEL: @paths(
; CHECK-COUNT-1: call preserve_mostcc void @__assay_workingset_touch
; CHECK-NOT: __assay_workingset_touch
; CHECK: ret
; NAIVE-LABEL: @paths(
; NAIVE-COUNT-3: icmp sge i8
; NAIVE-NOT: icmp sge i8
; NAIVE: ret
; With a clock of accesses, time passes at the end of each block.
; CLOCK-LABEL: @paths(
; CLOCK-COUNT-3: icmp sge i8
; CLOCK-NOT: icmp sge i8
; CLOCK: ret
define i32 @paths(ptr %p, i1 %c) {
  %v = load i32, ptr %p, align 4
  br i1 %c, label %yes, label %no
yes:
  store i32 1, ptr %p, align 4
  br label %end
no:
  br label %end
end:
  %w = load i32, ptr %p, align 4
  %s = add i32 %v, %w
  ret i32 %s
}

; What was checked on one path only is.
; CLOCK-LABEL: @one_path(
; CHECK-LABEL: @one_path(
; CHECK-COUNT-2: call preserve_mostcc void @__assay_workingset_touch
; CHECK-NOT: __assay_workingset_touch
; CHECK: ret
; NAIVE-LABEL: @one_path(
; NAIVE-COUNT-2: icmp sge i8
; NAIVE-NOT: icmp sge i8
; NAIVE: ret
define void @one_path(ptr %p, i1 %c) {
  br i1 %c, label %yes, label %end
yes:
  store i32 1, ptr %p, align 4
  br label %end
end:
  store i32 2, ptr %p, align 4
  ret void
}

; Of one address in a loop: one check in each iteration.
; CHECK-LABEL: @loop(
; CHECK-COUNT-1: call preserve_mostcc void @__assay_workingset_touch
; CHECK-NOT: __assay_workingset_touch
; CHECK: ret
; NAIVE-LABEL: @loop(
; NAIVE-COUNT-2: icmp sge i8
; NAIVE-NOT: icmp sge i8
; NAIVE: ret
define void @loop(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %head]
  %q = getelementptr i32, ptr %p, i64 %i
  store i32 1, ptr %q, align 4
  %v = load i32, ptr %q, align 4
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %head, label %out
out:
  ret void
}

declare void @other()
