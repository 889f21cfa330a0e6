// Part of `bun run check`: relative links in the documents must lead to existing files and headings, and the commands
// in the documents must exist. Every code block must declare how it is tested. "run FILE" means that FILE runs the block
// unchanged and names the document. "not-run" needs a reason. Blocks without a language contain output, and Mermaid
// blocks contain drawings. tests/integration/guides/docs.test.ts checks the guides in their rendered form.
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const LINK = /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g;

/** Matches commands of this project, by name or by file. */
const COMMAND = /\bbun (?:run ([\w:-]+)|((?:scripts|src|dispatcher)\/[\w/.-]+\.ts))/g;
const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

/** Matches the line that begins a code block, without Mermaid's. */
const BLOCK = /^ *```(?!mermaid$)(\S.*)$/gm;
const MARK = /^\w+(?: \w+)? run (\S+)$|^\w+ not-run \S.{9,}$/;

const faults = ["*.md", "docs/**/*.md", "src/sdk/*/README.md"]
  .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: ROOT })])
  .toSorted()
  .flatMap((file) => errorsIn(join(ROOT, file)).map((fault) => `${file}: ${fault}`));
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);

function errorsIn(file: string): string[] {
  const whole = readFileSync(file, "utf8");
  const text = whole.replaceAll(/^```[\s\S]*?^```/gm, "");
  const commands = [...whole.matchAll(COMMAND)].flatMap(([command, name, path]) => {
    const isThere = name === undefined ? existsSync(join(ROOT, path ?? "")) : name in scripts;
    return isThere ? [] : [`the command ${command} does not exist`];
  });
  const links = [...text.matchAll(LINK)].flatMap(([, path = "", heading]) => {
    const target = path === "" ? file : join(dirname(file), path);
    if (!existsSync(target)) return [`${relative(ROOT, target)} does not exist`];
    if (heading === undefined || headingsOf(target).has(heading)) return [];
    return [`${relative(ROOT, target)} has no heading ${heading}`];
  });
  const blocks = [...whole.matchAll(BLOCK)].flatMap(([, info = ""]) => {
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
  return [...commands, ...links, ...blocks];
}

/** Returns the anchors of the headings, in the form that Git forges generate. */
function headingsOf(file: string): ReadonlySet<string> {
  const headings = readFileSync(file, "utf8").matchAll(/^#+ (.*)$/gm);
  return new Set(
    [...headings].map(([, text = ""]) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}
