; Calls that touch memory themselves: arguments by value are read where the call is made; -fno-builtin changes nothing about
; who is called; inline assembly has its operands; the processor's own instructions have their lanes.
; RUN: %opt -passes=assay-instrument -S %s | FileCheck %s
; RUN: %opt -passes=assay-instrument -assay-tools=2 -S %s | FileCheck --check-prefix=SET %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%big = type { [25 x i64] }
declare void @take(ptr byval(%big))
declare i32 @__gxx_personality_v0(...)

; CHECK-LABEL: @by_value
; CHECK: call void @__assay_heap_range(ptr %p, i64 200, i32 0)
; CHECK-NEXT: call void @take(
; CHECK-NOT: __assay_heap_range
; CHECK: ret
; SET-LABEL: @by_value
; SET: call void @__assay_workingset_range(ptr %p, i64 200)
; SET-NEXT: call void @take(
; SET: ret
define void @by_value(ptr %p) {
  call void @take(ptr byval(%big) %p)
  ret void
}

; CHECK-LABEL: @by_value_with_cleanup
; CHECK: call void @__assay_heap_range(ptr %p, i64 200, i32 0)
; CHECK-NEXT: invoke void @take(
define void @by_value_with_cleanup(ptr %p) personality ptr @__gxx_personality_v0 {
  invoke void @take(ptr byval(%big) %p) to label %done unwind label %failed
done:
  ret void
failed:
  %what = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %what
}

; The caller's own argument is stack.
; CHECK-LABEL: @by_value_on
; CHECK-NOT: __assay_heap_range
; CHECK: ret
define void @by_value_on(ptr byval(%big) %p) {
  musttail call void @take(ptr byval(%big) %p)
  ret void
}

declare ptr @memcpy(ptr, ptr, i64) nobuiltin
declare i64 @strlen(ptr) nobuiltin

; CHECK-LABEL: @no_builtin
; CHECK: call ptr @memcpy
; CHECK-NEXT: call void @__assay_heap_range(ptr %q, i64 %n, i32 0)
; CHECK-NEXT: call void @__assay_heap_range(ptr %p, i64 %n, i32 1)
; CHECK: call i64 @strlen
; CHECK-NEXT: call void @__assay_heap_string(ptr %p, i64 -1, i32 0)
define void @no_builtin(ptr %p, ptr %q, i64 %n) "no-builtins" {
  call ptr @memcpy(ptr %p, ptr %q, i64 %n) nobuiltin
  call i64 @strlen(ptr %p) nobuiltin
  ret void
}

; CHECK-LABEL: @no_builtin_at_the_end
; CHECK: call void @__assay_heap_range(ptr %p, i64 %n, i32 1)
; CHECK-NEXT: call void @__assay_heap_range(ptr %q, i64 %n, i32 0)
; CHECK-NEXT: musttail call ptr @memcpy
define ptr @no_builtin_at_the_end(ptr %p, ptr %q, i64 %n) {
  %r = musttail call ptr @memcpy(ptr %p, ptr %q, i64 %n) nobuiltin
  ret ptr %r
}

; CHECK-LABEL: @assembly
; CHECK: call void asm sideeffect "incl $0; movq $1,%rax"
; CHECK-NEXT: call void @__assay_heap_range(ptr %p, i64 4, i32 0)
; CHECK-NEXT: call void @__assay_heap_range(ptr %q, i64 8, i32 0)
; CHECK-NEXT: call void @__assay_heap_range(ptr %p, i64 4, i32 1)
; CHECK: call void asm sideeffect ""
; CHECK-NOT: call void @__assay
; CHECK: ret
define void @assembly(ptr %p, ptr %q) {
  call void asm sideeffect "incl $0; movq $1,%rax", "=*m,*m,*m,~{rax}"(ptr elementtype(i32) %p, ptr elementtype(i64) %q, ptr elementtype(i32) %p)
  call void asm sideeffect "", "=*m,*m"(ptr elementtype(i32) %p, ptr elementtype(i32) %p)
  ret void
}

; Two lanes of four indexes, the signs of the mask.
; CHECK-LABEL: @gather
; CHECK: call <2 x double> @llvm.x86.avx2.gather.d.pd
; CHECK: icmp slt <2 x i64> %{{.*}}, zeroinitializer
; CHECK: [[INDEX:%.*]] = extractelement <4 x i32> %index, i64 0
; CHECK: [[WIDE:%.*]] = sext i32 [[INDEX]] to i64
; CHECK: [[BYTES:%.*]] = mul i64 [[WIDE]], 8
; CHECK: [[PLACE:%.*]] = getelementptr i8, ptr %p, i64 [[BYTES]]
; CHECK: call void @__assay_heap_masked(ptr [[PLACE]], i64 8, i64 %{{.*}}, i32 0)
; CHECK: call void @__assay_heap_masked(
; CHECK-NOT: call void @__assay_heap_masked(
; CHECK: ret
; SET-LABEL: @gather
; SET-COUNT-2: call void @__assay_workingset_masked(
; SET-NOT: call void @__assay_workingset_masked(
; SET: ret
define <2 x double> @gather(ptr %p, <4 x i32> %index, <2 x double> %mask) {
  %v = call <2 x double> @llvm.x86.avx2.gather.d.pd(<2 x double> zeroinitializer, ptr %p, <4 x i32> %index, <2 x double> %mask, i8 8)
  ret <2 x double> %v
}

; CHECK-LABEL: @masked
; CHECK: call void @__assay_heap_masked(ptr %p, i64 4, i64 %{{.*}}, i32 0)
; CHECK: call void @__assay_heap_masked(ptr %p, i64 1, i64 %{{.*}}, i32 1)
; CHECK: [[BITS:%.*]] = trunc i8 %bits to i2
; CHECK: [[LANES:%.*]] = zext i2 [[BITS]] to i64
; CHECK: call void @__assay_heap_masked(ptr %p, i64 2, i64 [[LANES]], i32 1)
; CHECK-COUNT-8: call void @__assay_heap_masked(ptr %{{.*}}, i64 8, i64 %{{.*}}, i32 1)
define void @masked(ptr %p, <8 x i32> %m, <16 x i8> %b, i8 %bits, <2 x i64> %q, <8 x i1> %k, <8 x i64> %d) {
  %v = call <8 x i32> @llvm.x86.avx2.maskload.d.256(ptr %p, <8 x i32> %m)
  call void @llvm.x86.sse2.maskmov.dqu(<16 x i8> %b, <16 x i8> %b, ptr %p)
  call void @llvm.x86.avx512.mask.pmov.qw.mem.128(ptr %p, <2 x i64> %q, i8 %bits)
  call void @llvm.x86.avx512.mask.scatter.dpq.512(ptr %p, <8 x i1> %k, <8 x i32> %m, <8 x i64> %d, i32 4)
  ret void
}

; CHECK-LABEL: @fixed
; CHECK: call void @__assay_heap_range(ptr %p, i64 512, i32 1)
; CHECK: call void @__assay_heap_range(ptr %q, i64 64, i32 0)
; CHECK-NEXT: call void @__assay_heap_range(ptr %p, i64 64, i32 1)
define void @fixed(ptr %p, ptr %q) {
  call void @llvm.x86.fxsave(ptr %p)
  call void @llvm.x86.movdir64b(ptr %p, ptr %q)
  ret void
}

declare <2 x double> @llvm.x86.avx2.gather.d.pd(<2 x double>, ptr, <4 x i32>, <2 x double>, i8)
declare <8 x i32> @llvm.x86.avx2.maskload.d.256(ptr, <8 x i32>)
declare void @llvm.x86.sse2.maskmov.dqu(<16 x i8>, <16 x i8>, ptr)
declare void @llvm.x86.avx512.mask.pmov.qw.mem.128(ptr, <2 x i64>, i8)
declare void @llvm.x86.avx512.mask.scatter.dpq.512(ptr, <8 x i1>, <8 x i32>, <8 x i64>, i32)
declare void @llvm.x86.fxsave(ptr)
declare void @llvm.x86.movdir64b(ptr, ptr)
