// In Lua 0 and "" are true. Finds every place where a number or a text is used as a condition, and `||` on them.
import ts from "typescript";

const FALSY_IN_JAVASCRIPT = ts.TypeFlags.NumberLike | ts.TypeFlags.StringLike | ts.TypeFlags.BigIntLike;

function conditionsOf(node) {
  if (ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)) return [node.expression];
  if (ts.isForStatement(node)) return node.condition === undefined ? [] : [node.condition];
  if (ts.isConditionalExpression(node)) return [node.condition];
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) return [node.operand];
  if (!ts.isBinaryExpression(node)) return [];
  const { kind } = node.operatorToken;
  return kind === ts.SyntaxKind.BarBarToken || kind === ts.SyntaxKind.AmpersandAmpersandToken ? [node.left] : [];
}

function mayBeZeroOrEmpty(type) {
  if (type.isUnion()) return type.types.some(mayBeZeroOrEmpty);
  return (type.flags & FALSY_IN_JAVASCRIPT) !== 0;
}

/** One line a fault. */
export function truthinessFaults(program, isOurs) {
  const checker = program.getTypeChecker();
  const faults = [];
  for (const file of program.getSourceFiles()) {
    if (file.isDeclarationFile || !isOurs(file.fileName)) continue;
    const visit = (node) => {
      for (const condition of conditionsOf(node)) {
        if (!mayBeZeroOrEmpty(checker.getTypeAtLocation(condition))) continue;
        const { line } = file.getLineAndCharacterOfPosition(condition.getStart());
        faults.push(
          `${file.fileName}:${line + 1}: ${condition.getText()} may be 0 or "", which is true in Lua; compare it`,
        );
      }
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  return faults;
}
