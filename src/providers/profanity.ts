import { CensorType, Profanity, profaneWords } from "@2toad/profanity";

import { nextTurn } from "../lib/groups.ts";
import type { ProviderEvent } from "./model.ts";

/** Words of the library's English list that are mostly names, tools or trades in reviews of local businesses. */
const HARMLESS = [
  "cox",
  "wang",
  "flange",
  "kum",
  "kummer",
  "hoar",
  "hoare",
  "pawn",
  "dink",
  "spac",
];

/**
 * The words that are taken from the library's other lists. Most of those are machine translations of the English one
 * and hold everyday words (`les`, `no`, `mais`, `pompa`), with which every review would be profane.
 */
export const FOREIGN_WORDS: Readonly<Record<string, readonly string[]>> = {
  de: `arsch, arschficker, arschloch, arschlöcher, schlampe, schlampen, schwachsinn, kacke, schwanzlutscher,
    schwanzsauger, fotze, hundeficker, schwuchtel, schwuchteln, scheiße, scheißkerl, scheißkerle, scheißkopf, fick,
    fick mich, ficks, gefickt, verfickt, hure, muschi, pisse, pisser, wichser, titten, verdammt`.split(
    /,\s+/,
  ),
  es: `puta, putas, culo, culos, mierda, mierdas, maricón, maricas, hijo de puta, hijos de puta, cabrón, imbécil,
    bastardo, polla, pollas, chupa pollas, follada, maldita sea, idiota, idiotas, culo de mierda,
    puta mierda`.split(/,\s+/),
  fr: `merde, putain, putains, connard, enculé, enculés, enfoiré, enfoirés, salope, salopes, bâtard, trou du cul,
    fils de pute, pute, chatte, chattes, baise-moi, branleur, merdique, merdeux, des conneries, nom de dieu, pédé,
    pédés, cul, crétin, crétins, tête de cul`.split(/,\s+/),
  it: `cazzo, cazzata, cazzone, stronzo, stronza, stronzata, merda, merdoso, merdata, coglione, coglioni, puttana,
    vaffanculo, minchia, minchione, bagascia, figlio di puttana, testa di cazzo, porca puttana, porca miseria,
    leccaculo, fottere, incazzarsi, mignotta, zoccola, rompipalle, rompiballe, cagata, cagare, imbecille, frocio,
    pirla`.split(/,\s+/),
  pt: `merda, merdas, caralho, caralhos, porra, puta, putas, filho da puta, filhos da puta, fodido, fodida, foda-se,
    cabrão, cabrões, sacana, buceta, bunda, filho da mãe, que merda, idiota, idiotas, cona`.split(
    /,\s+/,
  ),
  ru: `дерьмо, дерьмовый, сука, шлюха, шлюхи, мудак, пизда, пиздец, хуй, блядь, ебать, ебаный, ублюдок, ублюдки,
    засранец, сволочь, гребаный, говнюк, говнюки, сукин сын, придурок, придурки, стерва, педик, педики,
    чертов ублюдок, долбаный, задница`.split(/,\s+/),
};

/** Stands in for the first letter of a word that was found; of the private use area, so no text has it by itself. */
const MARK = "\uE000";
const MARKS = /\uE000/gu;

/** The characters that the library counts as part of a word, all but the underscore. */
const RUNS = /[\p{L}\p{N}\p{M}]+/gu;
const ONE_RUN = /^[\p{L}\p{N}\p{M}]+$/u;

export interface ProfanityFinder {
  /** The profane words of a text: lower case, each once, sorted. */
  wordsIn(text: string): string[];
}

export function createProfanityFinder(): ProfanityFinder {
  const foreign = Object.values(FOREIGN_WORDS).flat();
  const library = new Profanity({
    languages: ["en"],
    unicodeWordBoundaries: true,
    grawlixChar: MARK,
  });
  library.removeWords(HARMLESS);
  library.addWords(foreign);
  const english = (profaneWords.get("en") ?? []).filter((word) => !HARMLESS.includes(word));
  const words = [...new Set([...english, ...foreign])];
  const mayContain = prefilter(words);
  return {
    wordsIn(text) {
      const lower = text.normalize("NFC").replaceAll(MARK, " ").toLowerCase();
      if (!mayContain(lower)) return [];
      const marked = library.censor(lower, CensorType.FirstChar);
      const found = [...marked.matchAll(MARKS)].map(({ index }) => wordAt(lower, index, words));
      return [...new Set(found)].toSorted();
    },
  };
}

/**
 * The library tries every word at every place: 0.2 ms for 1,000 characters, in which the process serves nobody else.
 * A look-up of the words of the text says within a tenth of that when there is nothing to find. Of a phrase (`fick mich`,
 * `sh!t`) it looks for the first run of letters, and for all of it where that is there.
 */
function prefilter(words: readonly string[]): (lower: string) => boolean {
  const single = new Set(words.filter((word) => ONE_RUN.test(word)));
  const others = words.filter((word) => !ONE_RUN.test(word));
  const beginnings = new Set(others.map((word) => word.match(RUNS)?.[0]));
  return (lower) => {
    const runs = lower.match(RUNS) ?? [];
    if (runs.some((run) => single.has(run))) return true;
    return runs.some((run) => beginnings.has(run)) && others.some((word) => lower.includes(word));
  };
}

/** The longest known word that begins at `index`: `fick mich` rather than `fick`. */
function wordAt(lower: string, index: number, words: readonly string[]): string {
  const there = words.filter((word) => lower.startsWith(word, index));
  return there.toSorted((a, b) => b.length - a.length)[0] ?? "";
}

/** Texts with their profane words. */
export type CheckedTexts = ReadonlyMap<string, readonly string[]>;

/** The library takes up to 20 ms for 20,000 characters. After this many the event loop serves other requests first. */
const CHARS_PER_TURN = 10_000;

/** Looks through the texts of these events, in parts between which the event loop turns. */
export async function checkTexts(
  finder: ProfanityFinder,
  events: readonly ProviderEvent[],
): Promise<CheckedTexts> {
  const checked = new Map<string, readonly string[]>();
  let chars = 0;
  for (const text of textsOf(events)) {
    if (checked.has(text)) continue;
    if (chars >= CHARS_PER_TURN) {
      await nextTurn();
      chars = 0;
    }
    checked.set(text, finder.wordsIn(text));
    chars += text.length;
  }
  return checked;
}

/** Answers the words of a text that was checked. */
export function wordsFound(checked: CheckedTexts): (text: string) => readonly string[] {
  return (text) => {
    const words = checked.get(text);
    if (words === undefined) throw new Error("A text was not checked for profanity.");
    return words;
  };
}

/** How many characters of text these events carry. */
export function charsOf(events: readonly ProviderEvent[]): number {
  return textsOf(events).reduce((sum, text) => sum + text.length, 0);
}

function textsOf(events: readonly ProviderEvent[]): string[] {
  return events.flatMap((event) => ("review" in event ? [event.review.content] : []));
}
