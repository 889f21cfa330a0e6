import verifyGo from "../../../docs/verify/verify.go?raw";
import verifyPhp from "../../../docs/verify/verify.php?raw";
import verifyPy from "../../../docs/verify/verify.py?raw";
import verifyRb from "../../../docs/verify/verify.rb?raw";
import verifySh from "../../../docs/verify/verify.sh?raw";
// Disables the rule, which looks for a default export in the file itself. Vite exports the text of the file as
// default.
// oxlint-disable-next-line import/default
import verifyTs from "../../../docs/verify/verify.ts?raw";
import verifyJava from "../../../docs/verify/Verify.java?raw";

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
  { language: "TypeScript", file: "verify.ts", code: verifyTs },
  { language: "Python", file: "verify.py", code: verifyPy },
  { language: "PHP", file: "verify.php", code: verifyPhp },
  { language: "Go", file: "verify.go", code: verifyGo },
  { language: "Ruby", file: "verify.rb", code: verifyRb },
  { language: "Java", file: "Verify.java", code: verifyJava },
  { language: "Shell", file: "verify.sh", code: verifySh },
];
