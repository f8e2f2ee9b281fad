; A counter a stretch of code, behind its last access; a call that may not come back begins another; one that follows from others has
; none; in loops without calls counters stay in registers. Marks of clang are address computations afterwards.
; RUN: %opt -passes='assay-tags,assay-instrument' -assay-tools=4 -S %s | FileCheck %s
; RUN: %opt -passes='assay-tags,assay-instrument' -assay-tools=4 -assay-fields=1 -S %s | FileCheck --check-prefix=COUNTS %s
; RUN: %opt -passes='assay-tags,assay-instrument' -assay-tools=4 -assay-naive -S %s | FileCheck --check-prefix=NAIVE %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
%struct.S = type { i64, i64 }

; The layout of S. Six counters: of both, two of around, the loop, two of three blocks of branch; naive, one for each access.
; CHECK: @__assay_fields_asks = linkonce_odr hidden global
; CHECK: @__assay_fields_counters{{.*}} = private global [6 x i64] zeroinitializer, section "assay_fields"
; CHECK: @__assay_record_{{[0-9a-f]+}} = linkonce_odr hidden constant {{.*}}S\00s.c\00{{.*}}a\00long{{.*}}b\00long
; NAIVE: @__assay_fields_counters{{.*}} = private global [8 x i64]

; CHECK-LABEL: @both(
; CHECK: %[[A:.*]] = getelementptr {{.*}}%struct.S, ptr %s, i32 0, i32 0
; CHECK: load i64, ptr %[[A]]
; CHECK: store i64
; CHECK: %[[ASKS:.*]] = load volatile i32, ptr @__assay_fields_asks
; CHECK: icmp ne i32 %[[ASKS]], 0
; CHECK: call preserve_mostcc void @__assay_fields_sample(i32 %{{.*}}, i64 {{[0-9]+}}, ptr %s, ptr poison, ptr poison, ptr poison)
; CHECK: %[[SUM:.*]] = add i64 %{{.*}}, 1
; CHECK: store i64 %[[SUM]]
; CHECK-NOT: __assay_fields
; CHECK: ret void
; COUNTS-LABEL: @both(
; COUNTS-NOT: __assay_fields_sample
; COUNTS: ret void
define void @both(ptr %s) !dbg !20 {
  %a = call ptr @llvm.preserve.struct.access.index.p0.p0(ptr elementtype(%struct.S) %s, i32 0, i32 0), !dbg !30, !llvm.preserve.access.index !10
  %b = call ptr @llvm.preserve.struct.access.index.p0.p0(ptr elementtype(%struct.S) %s, i32 1, i32 1), !dbg !30, !llvm.preserve.access.index !10
  %v = load i64, ptr %a, !dbg !31
  store i64 %v, ptr %b, !dbg !32
  ret void
}

; CHECK-LABEL: @around(
; CHECK: __assay_fields_sample
; CHECK: call void @may_exit()
; CHECK: __assay_fields_sample
; CHECK: ret void
define void @around(ptr %s) !dbg !21 {
  %a = call ptr @llvm.preserve.struct.access.index.p0.p0(ptr elementtype(%struct.S) %s, i32 0, i32 0), !dbg !33, !llvm.preserve.access.index !10
  %v = load i64, ptr %a, !dbg !33
  call void @may_exit(), !dbg !34
  store i64 %v, ptr %a, !dbg !35
  ret void
}

; CHECK-LABEL: @loop(
; CHECK: loop:
; CHECK: %[[N:.*]] = phi i64 [ 0, %entry ]
; CHECK: add i64 %[[N]], 1
; CHECK: done:
; CHECK: store i64
; COUNTS-LABEL: @loop(
; COUNTS: phi i64
; COUNTS-NOT: __assay_fields_sample
; COUNTS: done:
define i64 @loop(ptr %s, i64 %n) !dbg !22 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %a = call ptr @llvm.preserve.struct.access.index.p0.p0(ptr elementtype(%struct.S) %s, i32 0, i32 0), !dbg !36, !llvm.preserve.access.index !10
  %v = load volatile i64, ptr %a, !dbg !36
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %v
}

; Of what comes in, goes one way or the other: two of the three are counted. The sides report what came before.
; CHECK-LABEL: @branch(
; CHECK-NOT: __assay_fields_sample
; CHECK: br i1 %c
; CHECK: left:
; CHECK-COUNT-2: call preserve_mostcc void @__assay_fields_sample
; CHECK: right:
; CHECK-COUNT-2: call preserve_mostcc void @__assay_fields_sample
; COUNTS-LABEL: @branch(
; COUNTS-COUNT-2: add i64 %{{.*}}, 1
; COUNTS-NOT: add i64 %{{.*}}, 1
; COUNTS: !llvm.module.flags
define void @branch(ptr %s) !dbg !23 {
entry:
  %a = call ptr @llvm.preserve.struct.access.index.p0.p0(ptr elementtype(%struct.S) %s, i32 0, i32 0), !dbg !37, !llvm.preserve.access.index !10
  %v = load i64, ptr %a, !dbg !37
  %c = icmp eq i64 %v, 0
  br i1 %c, label %left, label %right
left:
  store i64 1, ptr %a, !dbg !38
  ret void
right:
  store i64 2, ptr %a, !dbg !39
  ret void
}

declare void @may_exit()
declare ptr @llvm.preserve.struct.access.index.p0.p0(ptr, i32 immarg, i32 immarg)

!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C11, file: !2, emissionKind: FullDebug)
!2 = !DIFile(filename: "s.c", directory: "/")
!10 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "S", file: !2, line: 3, size: 128, elements: !11)
!11 = !{!12, !13}
!12 = !DIDerivedType(tag: DW_TAG_member, name: "a", scope: !10, file: !2, line: 3, baseType: !14, size: 64)
!13 = !DIDerivedType(tag: DW_TAG_member, name: "b", scope: !10, file: !2, line: 3, baseType: !14, size: 64, offset: 64)
!14 = !DIBasicType(name: "long", size: 64, encoding: DW_ATE_signed)
!15 = !DISubroutineType(types: !16)
!16 = !{null}
!20 = distinct !DISubprogram(name: "both", scope: !2, file: !2, line: 5, type: !15, unit: !1, spFlags: DISPFlagDefinition)
!21 = distinct !DISubprogram(name: "around", scope: !2, file: !2, line: 6, type: !15, unit: !1, spFlags: DISPFlagDefinition)
!22 = distinct !DISubprogram(name: "loop", scope: !2, file: !2, line: 7, type: !15, unit: !1, spFlags: DISPFlagDefinition)
!23 = distinct !DISubprogram(name: "branch", scope: !2, file: !2, line: 8, type: !15, unit: !1, spFlags: DISPFlagDefinition)
!30 = !DILocation(line: 5, column: 1, scope: !20)
!31 = !DILocation(line: 5, column: 2, scope: !20)
!32 = !DILocation(line: 5, column: 3, scope: !20)
!33 = !DILocation(line: 6, column: 1, scope: !21)
!34 = !DILocation(line: 6, column: 2, scope: !21)
!35 = !DILocation(line: 6, column: 3, scope: !21)
!36 = !DILocation(line: 7, column: 1, scope: !22)
!37 = !DILocation(line: 8, column: 1, scope: !23)
!38 = !DILocation(line: 8, column: 2, scope: !23)
!39 = !DILocation(line: 8, column: 3, scope: !23)
