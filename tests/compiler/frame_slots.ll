; In a function that is not optimised, values that leave their blocks share places in the frame, as far as they are not needed at once.
; RUN: %opt -passes='assay-instrument' -assay-tools=2 -S %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; Each load's line is needed behind a branch, the first value until the end: two places for four values.
; CHECK-LABEL: @shares(
; CHECK-COUNT-2: alloca i64
; CHECK-NOT: alloca
; CHECK: %v = load i64, ptr %p
; CHECK-NEXT: store i64 %v, ptr %[[KEPT:[0-9]+]]
; CHECK: store i64 %{{.*}}, ptr %[[SHARED:[0-9]+]]
; CHECK: %[[LINE:.*]] = load i64, ptr %[[SHARED]]
; CHECK-NEXT: call preserve_mostcc void @__assay_workingset_touch(i64 %[[LINE]])
; CHECK: call void @other()
; CHECK: store i64 %{{.*}}, ptr %[[SHARED]]
; CHECK: %[[LINE:.*]] = load i64, ptr %[[SHARED]]
; CHECK-NEXT: call preserve_mostcc void @__assay_workingset_touch(i64 %[[LINE]])
; CHECK: %[[V:.*]] = load i64, ptr %[[KEPT]]
; CHECK: ret i64 %[[V]]
define i64 @shares(ptr %p, ptr %q) noinline optnone {
  %v = load i64, ptr %p
  call void @other()
  store i64 1, ptr %q
  call void @other()
  ret i64 %v
}

; What a loop needs in each round stays where it is: its use comes before its end, again and again.
; CHECK-LABEL: @loop(
; CHECK: %v = load i64, ptr %p
; CHECK-NOT: store i64 %v, ptr %{{[0-9]}}
; CHECK: ret i64
define i64 @loop(ptr %p, i64 %n) noinline optnone {
entry:
  %v = load i64, ptr %p
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %j = add i64 %i, %v
  %c = icmp ult i64 %j, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %v
}

; A function that is returned to twice is left alone, and so is one that is optimised.
; CHECK-LABEL: @twice(
; CHECK-NOT: alloca
; CHECK: ret i64
define i64 @twice(ptr %p, ptr %q) noinline optnone {
  %v = load i64, ptr %p
  %r = call i32 @setjmp(ptr %q) returns_twice
  ret i64 %v
}
; CHECK-LABEL: @optimised(
; CHECK-NOT: alloca
; CHECK: ret i64
define i64 @optimised(ptr %p) {
  %v = load i64, ptr %p
  call void @other()
  ret i64 %v
}
declare void @other()
declare i32 @setjmp(ptr) returns_twice
