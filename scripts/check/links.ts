// Part of `bun run check`: relative links in the documents must lead to existing files and headings, and the commands
// in the documents must exist. The guides are checked in their rendered form (tests/integration/guides/docs.test.ts).
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const LINK = /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g;

/** Matches commands of this project, by name or by file. */
const COMMAND = /\bbun (?:run ([\w:-]+)|((?:scripts|src|dispatcher)\/[\w/.-]+\.ts))/g;
const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

const faults = ["*.md", "docs/**/*.md"]
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
  return [...commands, ...links];
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
