import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Marked } from "marked";

import { ROOT } from "../../db/executable.ts";
import { FINDING_RULES } from "../outbox/check-findings.ts";
import { CATALOG } from "../outbox/event.ts";
import { escape } from "./reference/fields.ts";
import EXAMPLES from "./event-examples.json" with { type: "json" };

const HERE = join(ROOT, "src/docs");

/** A guide as HTML, and its sections for the search index. */
export interface RenderedGuide {
  readonly html: string;
  readonly sections: readonly Section[];
}

interface Section {
  readonly id: string;
  readonly title: string;
  readonly depth: number;
  /** The text of the section, which the search covers. */
  readonly text: string;
}

/**
 * Renders a guide and replaces its placeholders: `{{snippet <file>}}` inserts a file from ./verify or ./oauth,
 * `{{events}}` inserts every event with examples, `{{checks}}` the findings of a check, and `{{root}}` the URL of this
 * server. Tests run the snippets and
 * validate the examples. The word after the language of a code block tells the tests what to do with it: `run`, or
 * `not-run` with a reason.
 */
export function renderGuide(markdown: string, serverRoot: string): RenderedGuide {
  const filled = markdown
    .replaceAll(/^\{\{snippet ([\w./-]+)\}\}$/gm, (_, name: string) => snippet(name))
    .replaceAll(/^\{\{events\}\}$/gm, () => eventSections())
    .replaceAll(/^\{\{checks\}\}$/gm, () => findingRows())
    .replaceAll("{{root}}", () => serverRoot);
  return { html: marked.parse(filled, { async: false }), sections: sectionsOf(filled) };
}

const marked = new Marked({
  renderer: {
    heading({ tokens, depth, text }) {
      const id = idOf(text);
      const link = depth === 1 ? "" : ` <a class="anchor" href="#${id}" aria-label="Link">#</a>`;
      return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}${link}</h${depth}>\n`;
    },
    table(token) {
      const cells = (row: typeof token.header, tag: string) =>
        row.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("");
      const rows = token.rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("\n");
      // The wrapper lets a wide table scroll on a phone, so that the whole page does not scroll sideways.
      return `<div class="table" tabindex="0"><table>\n<thead><tr>${cells(token.header, "th")}</tr></thead>\n<tbody>${rows}</tbody>\n</table></div>\n`;
    },
    code({ text, lang = "" }) {
      const [language = ""] = lang.split(" ");
      return `<div class="code" data-language="${escape(language)}"><pre tabindex="0"><code>${escape(text)}\n</code></pre></div>\n`;
    },
  },
});

function idOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
}

function sectionsOf(markdown: string): Section[] {
  const sections: { id: string; title: string; depth: number; text: string }[] = [];
  for (const token of marked.lexer(markdown)) {
    if (token.type === "heading") {
      const title = String(token["text"]).replaceAll("`", "");
      sections.push({ id: idOf(title), title, depth: Number(token["depth"]), text: "" });
      continue;
    }
    const section = sections.at(-1);
    // Code blocks are not indexed, because the bodies of all events would make up most of the index. A search finds the
    // text around them.
    if (section !== undefined && token.type !== "code") section.text += ` ${token.raw}`;
  }
  return sections.map((one) => ({ ...one, text: one.text.replaceAll(/[\s|*`#-]+/g, " ").trim() }));
}

const LANGUAGES: Readonly<Record<string, string>> = {
  ts: "typescript",
  mjs: "javascript",
  py: "python",
  rb: "ruby",
  ru: "ruby",
};

function snippet(name: string): string {
  const ending = name.split(".").at(-1) ?? "";
  return fenced(LANGUAGES[ending] ?? ending, readFileSync(join(HERE, name), "utf8"));
}

/** Example bodies by event name, written by scripts/vectors.ts. */
type Examples = Readonly<Record<string, { readonly full: string; readonly minimal: string }>>;

function eventSections(): string {
  const examples: Examples = EXAMPLES;
  return CATALOG.map((one) => {
    const { full, minimal } = examples[one.value] ?? { full: "{}", minimal: "{}" };
    const batch = one.in_batch ? "Part of a batch." : "Not part of a batch.";
    const body = one.envelope === "review" ? "review body" : "site-connection body";
    const facts = `${one.description} The [${body}](#the-${body.replace(" ", "-")}). ${batch}`;
    return `## ${one.value}\n\n${facts}\n\n${laidOut(full)}\n\nMinimal:\n\n${laidOut(minimal)}\n`;
  }).join("\n");
}

function findingRows(): string {
  const rows = FINDING_RULES.map(({ code, rule }) => `| \`${code}\` | ${rule} |`);
  return ["| Finding | The rule |", "|---|---|", ...rows].join("\n");
}

function laidOut(json: string): string {
  return fenced("json", JSON.stringify(JSON.parse(json), null, 2));
}

function fenced(language: string, text: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;
}
