import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Marked } from "marked";

import { CATALOG } from "../outbox/event.ts";

const HERE = import.meta.dirname;

/**
 * A guide as HTML. `{{snippet <file>}}` stands for a file of ./verify, `{{events}}` for every event with its examples,
 * both of which are tested as they are.
 */
export function renderGuide(markdown: string): string {
  const filled = markdown
    .replaceAll(/^\{\{snippet ([\w.]+)\}\}$/gm, (_, name: string) => snippet(name))
    .replaceAll(/^\{\{events\}\}$/gm, () => eventSections());
  return marked.parse(filled, { async: false });
}

const marked = new Marked({
  renderer: {
    heading({ tokens, depth, text }) {
      const id = text
        .toLowerCase()
        .replaceAll(/[^a-z0-9]+/g, "-")
        .replaceAll(/^-|-$/g, "");
      return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
    },
    table(token) {
      const cells = (row: typeof token.header, tag: string) =>
        row.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("");
      const rows = token.rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("\n");
      // A box of its own, so that on a phone the table scrolls and not the page.
      return `<div class="table"><table>\n<thead><tr>${cells(token.header, "th")}</tr></thead>\n<tbody>${rows}</tbody>\n</table></div>\n`;
    },
  },
});

const LANGUAGES: Readonly<Record<string, string>> = {
  ts: "typescript",
  py: "python",
  rb: "ruby",
  sh: "sh",
};

function snippet(name: string): string {
  const ending = name.split(".").at(-1) ?? "";
  return fenced(LANGUAGES[ending] ?? ending, readFileSync(join(HERE, "verify", name), "utf8"));
}

/** Event → its bodies, written by scripts/vectors.ts. */
type Examples = Readonly<Record<string, { readonly full: string; readonly minimal: string }>>;

function eventSections(): string {
  const text = readFileSync(join(HERE, "event-examples.json"), "utf8");
  const examples: Examples = JSON.parse(text);
  return CATALOG.map((one) => {
    const { full, minimal } = examples[one.value] ?? { full: "{}", minimal: "{}" };
    const batch = one.in_batch ? "Part of a batch." : "Not part of a batch.";
    return `## ${one.value}\n\n${one.description} ${batch}\n\n${laidOut(full)}\n\nMinimal:\n\n${laidOut(minimal)}\n`;
  }).join("\n");
}

function laidOut(json: string): string {
  return fenced("json", JSON.stringify(JSON.parse(json), null, 2));
}

function fenced(language: string, text: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;
}
