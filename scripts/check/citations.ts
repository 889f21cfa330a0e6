// Holds the citations in code, tests and documents to the contract: part of `bun run check`.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const SOURCES =
  "{.ci,.github,db,dispatcher,docs,scripts,src,tests}/**/*.{ts,tsx,js,css,sql,json,md,sh,yml}";

/** Path from the root → text. */
type Files = ReadonlyMap<string, string>;

/** A blank, or a line break with the mark of the comment that goes on behind it. */
const BLANK = String.raw`(?:[ \t]+|[ \t]*\n[ \t]*(?:\*|//|--)?[ \t]*)`;
const NUMBER = String.raw`\d+(?:\.\d+)?`;
const CITED = String.raw`${BLANK}(${NUMBER}(?:(?:,|${BLANK}(?:and|or))${BLANK}${NUMBER})*)`;
const CITATION = new RegExp(String.raw`\bcontract${CITED}`, "gi");
/** How the pages of the contract speak of each other; a section of an RFC is none of ours. */
const REFERENCE = new RegExp(String.raw`(?<!RFC \d+, )\bsections?${CITED}`, "gi");
/** The two documents that the contract was made of. `docs/decisions.md` is another one, and has no numbers. */
const RETIRED = new RegExp(
  String.raw`(?<![\w/.-])(?:spec/)?(?:interface\.md|decisions\.md\`?${BLANK}\d)`,
  "g",
);
const LINK = /\]\((?!\w+:)([^)#\s]+)/g;

/** The numbers of the contract's chapters and sections, as its headings give them. */
export function sectionsOf(files: Files): Set<string> {
  const pages = [...files].filter(([path]) => isContract(path)).map(([, text]) => text);
  const headings = pages.flatMap((text) => [...text.matchAll(/^#{1,2} (\d+(?:\.\d+)?)\.? /gm)]);
  return new Set(headings.map(([, number = ""]) => number));
}

/** What is wrong, one line each: `path:line: …`. */
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
    .map((one) => `${path}: links to ${one}, which is not there`);
}

/** Without git, so that it works in a copy, too. */
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
