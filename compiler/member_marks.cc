// Asks clang to mark every address of a member, before it forgets which member it is.
//
// LLVM's IR does not know members: those of unions have no address computation of their own, a
// bit-field is a shift of its storage unit, a class is a layout. Clang has a way to keep them, made
// for programs that the kernel relocates: for records with the attribute preserve_access_index it
// makes each member's address by an intrinsic that names the member in the debug information. The
// attribute is only known for BPF; this plugin of clang's gives it to every record of the program.
// compiler/clang_marks.cc turns the intrinsics into ordinary address computations again, before
// anything is optimised, and tags the accesses.
//
// Refused: an annotation of each member, which clang leaves out for bit-fields; a visitor that
// rewrites expressions, which would have to know every way in which the language reaches a member.

#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/Frontend/FrontendPluginRegistry.h"

namespace {

class MarkRecords : public clang::ASTConsumer {
public:
  void HandleTagDeclDefinition(clang::TagDecl *tag) override {
    auto *record = llvm::dyn_cast<clang::RecordDecl>(tag);
    if (record && !record->hasAttr<clang::BPFPreserveAccessIndexAttr>())
      record->addAttr(clang::BPFPreserveAccessIndexAttr::CreateImplicit(record->getASTContext()));
  }
};

class MarkRecordsAction : public clang::PluginASTAction {
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &,
                                                        llvm::StringRef) override {
    return std::make_unique<MarkRecords>();
  }
  bool ParseArgs(const clang::CompilerInstance &, const std::vector<std::string> &) override {
    return true;
  }
  ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<MarkRecordsAction>
    kMarkRecords("assay-members", "marks addresses of members");

} // namespace
