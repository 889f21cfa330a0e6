// Part of `bun run check`: the words of the documents must be English, or be listed in words.txt beside this file.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import dictionary from "dictionary-en-gb";
import nspell from "nspell";

const ROOT = join(import.meta.dir, "../..");
const DOCUMENTS = ["*.md", "docs/**/*.md", "src/docs/guides/*.md", "src/sdk/*/README.md"];

const spelling = nspell(Buffer.from(dictionary.aff), Buffer.from(dictionary.dic));
for (const word of readFileSync(join(import.meta.dir, "words.txt"), "utf8").split("\n"))
  if (word !== "") spelling.add(word);

const faults = DOCUMENTS.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: ROOT })])
  .toSorted()
  .flatMap((file) =>
    unknownWords(prose(readFileSync(join(ROOT, file), "utf8"))).map((one) => `${file}: ${one}`),
  );
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);

/** Removes code, URLs, file names and HTML. */
function prose(markdown: string): string {
  return markdown
    .replaceAll(/^( *)```[\s\S]*?^\1```/gm, " ")
    .replaceAll(/`[^`]*`/g, " ")
    .replaceAll(/\{\{.*?\}\}/g, " ")
    .replaceAll(/\]\([^)]*\)/g, "] ")
    .replaceAll(/https?:\S+|\S+\.(?:ts|md|json|sql)\b|\S+@\S+|<[^>]*>/g, " ");
}

/** Returns whether the word is an identifier or a product name. */
function isName(word: string): boolean {
  return /[\p{N}_]|.\p{Lu}/u.test(word);
}

function unknownWords(text: string): string[] {
  const words = text.match(/\p{L}[\p{L}\p{N}’']*(?:_\w+)*/gu) ?? [];
  const plain = words.map((word) => word.replace(/[’']s?$/u, "").replaceAll("’", "'"));
  return [...new Set(plain)].filter(
    (word) => !isName(word) && word.length > 1 && !spelling.correct(word),
  );
}
