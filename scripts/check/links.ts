// Part of `bun run check`: what our documents link to within the repository is there, down to the heading. The pages of
// the guides are looked at as they are served (tests/integration/docs.test.ts).
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const LINK = /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g;

const faults = ["*.md", "docs/**/*.md"]
  .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: ROOT })])
  .toSorted()
  .flatMap((file) => faultsOf(join(ROOT, file)).map((fault) => `${file}: ${fault}`));
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);

function faultsOf(file: string): string[] {
  const text = readFileSync(file, "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
  return [...text.matchAll(LINK)].flatMap(([, path = "", heading]) => {
    const target = path === "" ? file : join(dirname(file), path);
    if (!existsSync(target)) return [`there is no ${relative(ROOT, target)}`];
    if (heading === undefined || headingsOf(target).has(heading)) return [];
    return [`${relative(ROOT, target)} has no heading ${heading}`];
  });
}

/** As forges name them. */
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
