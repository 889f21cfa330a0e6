import verifyGo from "../../../docs/verify/verify.go" with { type: "text" };
import verifyPhp from "../../../docs/verify/verify.php" with { type: "text" };
import verifyPy from "../../../docs/verify/verify.py" with { type: "text" };
import verifyRb from "../../../docs/verify/verify.rb" with { type: "text" };
import verifySh from "../../../docs/verify/verify.sh" with { type: "text" };
// TypeScript and the linter read this file as code, but the bundler inlines its text (`samples` in build.ts).
// @ts-expect-error
// oxlint-disable-next-line import/default
import verifyTs from "../../../docs/verify/verify.ts" with { type: "text" };
import verifyJava from "../../../docs/verify/Verify.java" with { type: "text" };

interface Snippet {
  readonly language: string;
  readonly file: string;
  readonly code: string;
}

/**
 * Sample programs that verify the signature of a webhook delivery. They are the files of the guide "Verifying",
 * which tests run against real deliveries.
 */
export const VERIFY_SNIPPETS: readonly Snippet[] = [
  { language: "TypeScript", file: "verify.ts", code: String(verifyTs) },
  { language: "Python", file: "verify.py", code: verifyPy },
  { language: "PHP", file: "verify.php", code: verifyPhp },
  { language: "Go", file: "verify.go", code: verifyGo },
  { language: "Ruby", file: "verify.rb", code: verifyRb },
  { language: "Java", file: "Verify.java", code: verifyJava },
  { language: "Shell", file: "verify.sh", code: verifySh },
];
