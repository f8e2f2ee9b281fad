; One counter a stretch of code, behind its last access; a call that may not come back begins another; in loops without calls
; counters stay in registers. Marks of clang are address computations afterwards.
; RUN: %opt -passes='assay-tags,assay-instrument' -assay-tools=4 -S %s | FileCheck %s
; RUN: %opt -passes='assay-tags,assay-instrument' -assay-tools=4 -assay-fields=1 -S %s | FileCheck --check-prefix=COUNTS %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
%struct.S = type { i64, i64 }

; Four counters; the layout of S.
; CHECK: @__assay_fields_counters{{.*}} = private global [4 x i64] zeroinitializer, section "assay_fields"
; CHECK: @__assay_record_{{[0-9a-f]+}} = linkonce_odr hidden constant {{.*}}S\00s.c\00{{.*}}a\00long{{.*}}b\00long

; CHECK-LABEL: @both(
; CHECK: %[[A:.*]] = getelementptr {{.*}}%struct.S, ptr %s, i32 0, i32 0
; CHECK: load i64, ptr %[[A]]
; CHECK: store i64
; CHECK: %[[SUM:.*]] = add i64 %{{.*}}, 1
; CHECK: store i64 %[[SUM]]
; CHECK: icmp slt i64 %[[SUM]], 0
; CHECK: call preserve_mostcc void @__assay_fields_sample(ptr %{{.*}}, ptr %s, ptr null, ptr null, ptr null)
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

; In the loop a register counts down; the counter is added to behind it.
; CHECK-LABEL: @loop(
; CHECK: loop:
; CHECK: phi i64
; CHECK: %[[NEXT:.*]] = sub i64 %{{.*}}, 1
; CHECK: icmp eq i64 %[[NEXT]], 0
; CHECK: call preserve_mostcc i64 @__assay_fields_piece
; CHECK: done:
; CHECK: store i64
; COUNTS-LABEL: @loop(
; COUNTS: phi i64
; COUNTS-NOT: __assay_fields_piece
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
!30 = !DILocation(line: 5, column: 1, scope: !20)
!31 = !DILocation(line: 5, column: 2, scope: !20)
!32 = !DILocation(line: 5, column: 3, scope: !20)
!33 = !DILocation(line: 6, column: 1, scope: !21)
!34 = !DILocation(line: 6, column: 2, scope: !21)
!35 = !DILocation(line: 6, column: 3, scope: !21)
!36 = !DILocation(line: 7, column: 1, scope: !22)
