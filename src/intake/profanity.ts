import { CensorType, profaneWords, Profanity } from "@2toad/profanity";

import { nextTurn } from "../lib/batches.ts";
import type { Change } from "./change.ts";

/**
 * Words of the English list of @2toad/profanity that do not count as profane, because in reviews of local businesses
 * they are mostly names, tools or trades.
 */
const HARMLESS_WORDS = words("cox, wang, flange, kum, kummer, hoar, hoare, pawn, dink, spac");

/**
 * Profane words of other languages, chosen from the lists of @2toad/profanity. Most words of those lists are machine
 * translations of the English list and include everyday words (`les`, `no`, `mais`, `pompa`), with which nearly every
 * review would be profane.
 */
export const FOREIGN_WORDS: Readonly<Record<string, readonly string[]>> = {
  de: words(`arsch, arschficker, arschloch, arschlöcher, schlampe, schlampen, schwachsinn, kacke, schwanzlutscher,
    schwanzsauger, fotze, hundeficker, schwuchtel, schwuchteln, scheiße, scheißkerl, scheißkerle, scheißkopf, fick,
    fick mich, ficks, gefickt, verfickt, hure, muschi, pisse, pisser, wichser, titten, verdammt`),
  es: words(`puta, putas, culo, culos, mierda, mierdas, maricón, maricas, hijo de puta, hijos de puta, cabrón, imbécil,
    bastardo, polla, pollas, chupa pollas, follada, maldita sea, idiota, idiotas, culo de mierda,
    puta mierda`),
  fr: words(`merde, putain, putains, connard, enculé, enculés, enfoiré, enfoirés, salope, salopes, bâtard, trou du cul,
    fils de pute, pute, chatte, chattes, baise-moi, branleur, merdique, merdeux, des conneries, nom de dieu, pédé,
    pédés, cul, crétin, crétins, tête de cul`),
  it: words(`cazzo, cazzata, cazzone, stronzo, stronza, stronzata, merda, merdoso, merdata, coglione, coglioni, puttana,
    vaffanculo, minchia, minchione, bagascia, figlio di puttana, testa di cazzo, porca puttana, porca miseria,
    leccaculo, fottere, incazzarsi, mignotta, zoccola, rompipalle, rompiballe, cagata, cagare, imbecille, frocio,
    pirla`),
  pt: words(`merda, merdas, caralho, caralhos, porra, puta, putas, filho da puta, filhos da puta, fodido, fodida, foda-se,
    cabrão, cabrões, sacana, buceta, bunda, filho da mãe, que merda, idiota, idiotas, cona`),
  ru: words(`дерьмо, дерьмовый, сука, шлюха, шлюхи, мудак, пизда, пиздец, хуй, блядь, ебать, ебаный, ублюдок, ублюдки,
    засранец, сволочь, гребаный, говнюк, говнюки, сукин сын, придурок, придурки, стерва, педик, педики,
    чертов ублюдок, долбаный, задница`),
};

function words(list: string): string[] {
  return list.split(/,\s+/);
}

/**
 * @2toad/profanity replaces the first letter of each profane word by this private-use character. Before that, the
 * character is removed from the text.
 */
const PROFANITY_MARK = "\uE000";

/** Returns the profane words of a text: lower case, unique, sorted. */
export type ProfanityFinder = (text: string) => string[];

export function createProfanityFinder(): ProfanityFinder {
  const foreign = Object.values(FOREIGN_WORDS).flat();
  const library = new Profanity({
    languages: ["en"],
    unicodeWordBoundaries: true,
    grawlixChar: PROFANITY_MARK,
  });
  library.removeWords(HARMLESS_WORDS);
  library.addWords(foreign);
  const english = (profaneWords.get("en") ?? []).filter((word) => !HARMLESS_WORDS.includes(word));
  const longestFirst = [...english, ...foreign].toSorted((a, b) => b.length - a.length);
  // @2toad/profanity blocks the event loop for 0.2 ms per 1,000 characters. This expression finds in a twentieth of
  // that time that a text contains none, so the package is not called for most texts.
  const known = longestFirst.map((word) => RegExp.escape(word)).join("|");
  const mayContain = new RegExp(`(?<![\\p{L}\\p{N}\\p{M}])(?:${known})`, "u");
  return (text) => {
    const lower = text.normalize("NFC").replaceAll(PROFANITY_MARK, " ").toLowerCase();
    if (!mayContain.test(lower)) return [];
    const marked = library.censor(lower, CensorType.FirstChar);
    const found = [...marked.matchAll(/\uE000/g)].map(({ index }) =>
      // The longest match wins: `fick mich` rather than `fick`.
      longestFirst.find((word) => lower.startsWith(word, index)),
    );
    return [...new Set(found)].filter((word) => word !== undefined).toSorted();
  };
}

/**
 * Number of characters after which the check yields to the event loop. @2toad/profanity takes up to 20 ms for 20,000
 * characters.
 */
const CHARS_PER_TURN = 10_000;

/**
 * Finds the profane words of all reported texts, and yields to the event loop after every `CHARS_PER_TURN` characters.
 */
export async function checkTexts(find: ProfanityFinder, changes: readonly Pick<Change, "what">[]) {
  const checked = new Map<string, readonly string[]>();
  let chars = 0;
  for (const text of textsOf(changes)) {
    if (checked.has(text)) continue;
    if (chars >= CHARS_PER_TURN) {
      await nextTurn();
      chars = 0;
    }
    checked.set(text, find(text));
    chars += text.length;
  }
  return checked;
}

/** Counts the characters of reported text in these changes. */
export function charsOf(changes: readonly Pick<Change, "what">[]): number {
  return textsOf(changes).reduce((sum, text) => sum + text.length, 0);
}

function textsOf(changes: readonly Pick<Change, "what">[]): string[] {
  return changes.flatMap(({ what }) => (what.kind === "report" ? [what.review.content] : []));
}
