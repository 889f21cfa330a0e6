// Part of `bun run check`: counts headless relative words in comments, documents, the texts of the dashboard and the
// subjects of commits that the remote's main does not have. A sentence such as "who was answered waits" hides its
// subject, and a reader who does not know the code cannot follow it. The count is a thermometer; docs/contributing.md
// has the rules of style. `bun scripts/check/language.ts --list [path …]` prints every occurrence and every comment that
// begins with a preposition, with file and line.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { parseArgs } from "node:util";

const ROOT = join(import.meta.dir, "../..");
/** The highest count per 1,000 words, for all passages of a kind. */
const LIMITS = { comments: 4, documents: 6, texts: 6, subjects: 0 } as const;

const HEADLESS = /\b(?:what|who|whoever|whose|whom|whatever)\b/gi;
const WRONG_START =
  /^(?:of|for|in|on|at|by|with|without|from|to|into|as|after|before|beside|behind|until|what|who|whoever|whose|whom|whatever|where|so many)\b/i;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu;

const FILES = {
  comments: ["{db,dispatcher,scripts,src,tests}/**/*.{ts,tsx,sql,css}"],
  documents: ["*.md", "docs/**/*.md", "src/docs/guides/*.md", "src/sdk/*/README.md"],
  texts: ["src/dashboard/app/**/*.{ts,tsx}"],
  subjects: [],
} as const;

type Kind = keyof typeof LIMITS;

/** A comment, or the prose of a document: the text without its markers, and the line where it begins. */
export interface Passage {
  readonly text: string;
  readonly line: number;
}

/** Matches strings and comments, by the extension of the file. */
const TOKENS: Readonly<Record<string, RegExp>> & { readonly ".ts": RegExp } = {
  ".sql": /'(?:[^']|'')*'|(?:^[ \t]*--.*\n?)+|--.*/gm,
  ".css": /\/\*[\s\S]*?\*\//g,
  ".ts":
    /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[dgimsuvy]*(?=[\s,;).])|\/\*[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n?)+|\/\/.*/gm,
};

/**
 * Returns the comments of a source file. Adjacent `//` or `--` lines form one comment. Strings and templates are
 * skipped.
 */
export function commentsOf(path: string, source: string): Passage[] {
  const token = TOKENS[extname(path)] ?? TOKENS[".ts"];
  return [...source.matchAll(token)].flatMap((match) => {
    const raw = match[0].trimStart();
    if (!/^(?:\/\*|\/\/|--)/.test(raw)) return [];
    const start = match.index + match[0].length - raw.length;
    const text = raw
      .replaceAll(/^\s*(?:\/\*+|\*+\/|\*|\/\/+|--+|#!)|\*+\/\s*$/gm, "")
      .replaceAll(/`[^`\n]*`/g, "code")
      .trim();
    const isProse = text !== "" && !/^(?:oxlint-|biome-|@ts-|eslint-|<reference)/.test(text);
    return isProse ? [{ text, line: source.slice(0, start).split("\n").length }] : [];
  });
}

/**
 * Returns the prose of a Markdown file. Code and link targets are replaced by blanks, so that the line numbers stay the
 * same.
 */
export function proseOf(source: string): Passage[] {
  const text = source
    .replaceAll(/^( *)```[\s\S]*?^\1```/gm, (block) => block.replaceAll(/[^\n]/g, " "))
    .replaceAll(/`[^`\n]*`/g, "code")
    .replaceAll(/\]\([^)\n]*\)/g, "]");
  return [{ text, line: 1 }];
}

/** Texts of a page: what stands between tags, and strings of at least three words outside of imports. */
export function textsOf(source: string): Passage[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|^import [\s\S]*?;$/gm, (skipped) =>
    skipped.replaceAll(/[^\n]/g, " "),
  );
  const found = code.matchAll(
    /"((?:\\.|[^"\\\n])*)"|`((?:\\.|[^`\\])*)`|(?<=[>}])([^<>{}`"=;()]+)(?=[<{])/g,
  );
  return [...found].flatMap((match) => {
    const text = (match[1] ?? match[2] ?? match[3] ?? "").trim();
    const line = code.slice(0, match.index).split("\n").length;
    return /^\S+(?:\s+\S+){2}/.test(text) ? [{ text, line }] : [];
  });
}

/** Subjects of the commits that the remote's main does not have; none without a repository or a remote. */
function subjects(): Passage[] {
  const range = ["log", "--no-merges", "--format=%s", "origin/main..HEAD"];
  const { status, stdout } = spawnSync("git", range, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) return [];
  return stdout
    .split("\n")
    .filter((text) => text !== "")
    .map((text, i) => ({ text, line: i + 1 }));
}

const PASSAGES: Readonly<
  Record<Exclude<Kind, "subjects">, (path: string, source: string) => Passage[]>
> = {
  comments: commentsOf,
  documents: (_, source) => proseOf(source),
  texts: (_, source) => textsOf(source),
};

/** Counts the words of each file of a kind, or of all subjects. */
function countAll(kind: Kind, only: readonly string[]): Count[] {
  if (kind === "subjects") return only.length > 0 ? [] : [measure("git log", subjects(), kind)];
  return FILES[kind]
    .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: ROOT })])
    .filter((path) => only.length === 0 || only.some((prefix) => path.startsWith(prefix)))
    .toSorted()
    .map((path) => {
      const source = readFileSync(join(ROOT, path), "utf8");
      return measure(path, PASSAGES[kind](path, source), kind);
    });
}

interface Count {
  words: number;
  headless: number;
  readonly findings: string[];
}

function measure(path: string, passages: readonly Passage[], kind: Kind): Count {
  const count: Count = { words: 0, headless: 0, findings: [] };
  for (const { text, line } of passages) {
    count.words += text.match(WORD)?.length ?? 0;
    for (const match of text.matchAll(HEADLESS)) {
      count.headless += 1;
      const at = line + text.slice(0, match.index).split("\n").length - 1;
      count.findings.push(`${path}:${at}: "${match[0]}"`);
    }
    if (kind === "comments" && WRONG_START.test(text)) {
      count.findings.push(`${path}:${line}: begins with "${text.split(/\s/, 1)[0] ?? ""}"`);
    }
  }
  return count;
}

/** Returns the headless words per 1,000 words. */
function shareOf(counts: readonly Count[]): number {
  const words = counts.reduce((total, one) => total + one.words, 0);
  const headless = counts.reduce((total, one) => total + one.headless, 0);
  return words === 0 ? 0 : (1000 * headless) / words;
}

if (import.meta.main) {
  const { values, positionals: only } = parseArgs({
    options: { list: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  let failed = false;
  for (const kind of ["comments", "documents", "texts", "subjects"] as const) {
    const counts = countAll(kind, only);
    if (values.list)
      for (const { findings } of counts) for (const one of findings) console.log(one);
    const perThousand = shareOf(counts);
    console.log(`${kind}: ${perThousand.toFixed(1)} per 1,000 words (limit ${LIMITS[kind]})`);
    failed ||= perThousand > LIMITS[kind];
  }
  process.exitCode = failed ? 1 : 0;
}
