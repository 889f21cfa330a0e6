// Part of `bun run check`: compares the citations in code, tests and documents with the sections of the contract.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

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
/**
 * Two former documents that the contract replaced. `docs/decisions.md` is a different document, without section
 * numbers.
 */
const RETIRED = new RegExp(
  String.raw`(?<![\w/.-])(?:spec/)?(?:interface\.md|decisions\.md\`?${BLANK}\d)`,
  "g",
);
const LINK = /\]\((?!\w+:)([^)#\s]+)/g;

/** Returns the numbers of the contract's chapters and sections from its headings. */
export function sectionsOf(files: Files): Set<string> {
  const pages = [...files].filter(([path]) => isContract(path)).map(([, text]) => text);
  const headings = pages.flatMap((text) => [...text.matchAll(/^#{1,2} (\d+(?:\.\d+)?)\.? /gm)]);
  return new Set(headings.map(([, number = ""]) => number));
}

/** Returns one line per error, in the form `path:line: …`. */
export function citationFaults(files: Files, exists: (path: string) => boolean): string[] {
  const sections = sectionsOf(files);
  return [...files].flatMap(([path, text]) => {
    const fault = (match: RegExpExecArray, what: string) =>
      `${path}:${text.slice(0, match.index).split("\n").length}: ${what}`;
    const unknown = (pattern: RegExp) =>
      [...text.matchAll(pattern)].flatMap((match) =>
        [...(match[1] ?? "").matchAll(new RegExp(NUMBER, "g"))].flatMap(([number]) =>
          sections.has(number) ? [] : [fault(match, `the contract has no section ${number}`)],
        ),
      );
    return [
      ...unknown(CITATION),
      ...(isContract(path) ? unknown(REFERENCE) : []),
      ...[...text.matchAll(RETIRED)].map((match) => fault(match, "cite docs/contract.md instead")),
      ...(path.startsWith("docs/") || !path.includes("/") ? deadLinks(path, text, exists) : []),
    ];
  });
}

function isContract(path: string): boolean {
  return path.startsWith("docs/contract/");
}

function deadLinks(path: string, text: string, exists: (path: string) => boolean): string[] {
  const targets = [...text.matchAll(LINK)].map(([, target = ""]) => join(dirname(path), target));
  return targets
    .filter((one) => !exists(one))
    .map((one) => `${path}: links to ${one}, which does not exist`);
}

/** Reads the files without git, so that it also works in a copy of the sources. */
function readFiles(): Files {
  const paths = [SOURCES, "*.md"].flatMap((pattern) => [
    ...new Bun.Glob(pattern).scanSync({ cwd: ROOT, dot: true }),
  ]);
  return new Map(paths.toSorted().map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));
}

if (import.meta.main) {
  const faults = citationFaults(readFiles(), (path) => existsSync(join(ROOT, path)));
  for (const fault of faults) console.log(fault);
  process.exitCode = faults.length === 0 ? 0 : 1;
}
