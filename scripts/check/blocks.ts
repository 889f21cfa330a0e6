// Part of `bun run check`: every code block in the documents must declare how it is tested. "run FILE" means that FILE
// runs the block unchanged and names the document. "not-run" needs a reason. Blocks without a language contain output,
// and Mermaid blocks contain drawings. tests/integration/guides/docs.test.ts checks the guides at /docs, which show the
// reason.
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const MARK = /^\w+(?: \w+)? run (\S+)$|^\w+ not-run \S.{9,}$/;

const faults = ["*.md", "docs/**/*.md", "src/sdk/*/README.md"]
  .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: ROOT })])
  .toSorted()
  .flatMap((file) => errorsIn(file).map((fault) => `${file}: ${fault}`));
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);

function errorsIn(file: string): string[] {
  const blocks = readFileSync(join(ROOT, file), "utf8").matchAll(/^ *```(?!mermaid$)(\S.*)$/gm);
  return [...blocks].flatMap(([, info = ""]) => {
    const mark = MARK.exec(info);
    if (mark === null)
      return [
        `a code block names neither a test that runs it nor the reason why none does: ${info}`,
      ];
    const [, runner] = mark;
    if (runner === undefined) return [];
    const path = join(ROOT, runner);
    return existsSync(path) && readFileSync(path, "utf8").includes(basename(file))
      ? []
      : [`${runner} does not name the document whose block it should run`];
  });
}
