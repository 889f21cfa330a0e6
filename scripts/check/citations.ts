// Part of `bun run check`: compares the citations in code, tests and documents with the sections of the contract.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const SOURCES =
  "{.ci,.github,db,dispatcher,docs,scripts,src,tests}/**/*.{ts,tsx,js,css,sql,json,md,sh,yml}";

/** Texts of files by their paths from the root. */
type Files = ReadonlyMap<string, string>;

/** White space, or a line break followed by the comment marker of the next line. */
const BLANK = String.raw`(?:[ \t]+|[ \t]*\n[ \t]*(?:\*|//|--)?[ \t]*)`;
const NUMBER = String.raw`\d+(?:\.\d+)?`;
const CITED = String.raw`${BLANK}(${NUMBER}(?:(?:,|${BLANK}(?:and|or))${BLANK}${NUMBER})*)`;
const CITATION = new RegExp(String.raw`\bcontract${CITED}`, "gi");
/** Matches references between pages of the contract. A section of an RFC is excluded. */
const REFERENCE = new RegExp(String.raw`(?<!RFC \d+, )\bsections?${CITED}`, "gi");

/** Returns the numbers of the contract's chapters and sections from its headings. */
export function sectionsOf(files: Files): Set<string> {
  const pages = [...files].filter(([path]) => isContract(path)).map(([, text]) => text);
  const headings = pages.flatMap((text) => [...text.matchAll(/^#{1,2} (\d+(?:\.\d+)?)\.? /gm)]);
  return new Set(headings.map(([, number = ""]) => number));
}

/** Returns one line per error, in the form `path:line: …`. */
export function citationFaults(files: Files): string[] {
  const sections = sectionsOf(files);
  return [...files].flatMap(([path, text]) => {
    const unknown = (pattern: RegExp) =>
      [...text.matchAll(pattern)].flatMap((match) => {
        const line = text.slice(0, match.index).split("\n").length;
        const numbers = (match[1] ?? "").match(new RegExp(NUMBER, "g")) ?? [];
        return numbers
          .filter((number) => !sections.has(number))
          .map((number) => `${path}:${line}: the contract has no section ${number}`);
      });
    return [...unknown(CITATION), ...(isContract(path) ? unknown(REFERENCE) : [])];
  });
}

function isContract(path: string): boolean {
  return path.startsWith("docs/contract/");
}

/** Reads the files without git, so that it also works in a copy of the sources. */
function readFiles(): Files {
  const paths = [SOURCES, "*.md"].flatMap((pattern) => [
    ...new Bun.Glob(pattern).scanSync({ cwd: ROOT, dot: true }),
  ]);
  return new Map(paths.toSorted().map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));
}

if (import.meta.main) {
  const faults = citationFaults(readFiles());
  for (const fault of faults) console.log(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
