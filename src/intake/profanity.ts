import { CensorType, profaneWords, Profanity } from "@2toad/profanity";

import { nextTurn } from "../lib/batches.ts";
import type { Change } from "./change.ts";

/** Words of the library's English list that are mostly names, tools or trades in reviews of local businesses. */
const HARMLESS = words("cox, wang, flange, kum, kummer, hoar, hoare, pawn, dink, spac");

/**
 * Words that we take from the library's other lists. Most entries there are machine translations of the English list
 * and include everyday words (`les`, `no`, `mais`, `pompa`), which would make nearly every review profane.
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
 * Replaces the first letter of a word that was found. It is a private-use character; texts that contain it are
 * cleaned first.
 */
const MARK = "\uE000";

/** Returns the profane words of a text: lower case, unique, sorted. */
export type ProfanityFinder = (text: string) => string[];

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
  const longestFirst = [...english, ...foreign].toSorted((a, b) => b.length - a.length);
  // The library blocks the event loop for 0.2 ms per 1,000 characters. This expression rules out clean texts in a
  // twentieth of that time.
  const known = longestFirst.map((word) => RegExp.escape(word)).join("|");
  const mayContain = new RegExp(`(?<![\\p{L}\\p{N}\\p{M}])(?:${known})`, "u");
  return (text) => {
    const lower = text.normalize("NFC").replaceAll(MARK, " ").toLowerCase();
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
 * The number of characters after which the event loop serves other requests, because the library needs up to 20 ms
 * for 20,000 characters.
 */
const CHARS_PER_TURN = 10_000;

/** Finds the profane words of all reported texts, and yields to the event loop between long parts. */
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
