import { describe, expect, test } from "bun:test";

import { Profanity, profaneWords } from "@2toad/profanity";

import { createProfanityFinder, FOREIGN_WORDS } from "../../../src/intake/profanity.ts";

describe("profanity", () => {
  test.each([
    ["What a shit job, SHIT and bullshit", ["bullshit", "shit"]],
    ["Das war Scheiße", ["scheiße"]],
    ["Quel connard, de la merde", ["connard", "merde"]],
    ["Es un hijo de puta", ["hijo de puta"]],
    ["Che cazzo di lavoro", ["cazzo"]],
    ["Que caralho", ["caralho"]],
    ["Полное дерьмо", ["дерьмо"]],
    ["my_shit_day", ["shit"]],
    ["f u c k this", ["f u c k"]],
    ["sh!t happens", ["sh!t"]],
    ["cabrón".normalize("NFD"), ["cabrón"]],
    ["a \uE000 mark and shit", ["shit"]],
  ])("in %j is %j", (text, words) => {
    expect(wordsIn(text)).toEqual(words);
  });

  test.each([
    "The people from Scunthorpe and the Assessor came in time.",
    "Mr Cox and Mrs Wang fixed the pipe flange.",
    "Les maîtres mots: la qualité, pour tous.",
    "Mais um bom trabalho, no horário.",
    "La pompa funziona, ottimo pesce.",
    "El vehículo llegó caliente.",
    "Die Pfoten der Hunde blieben sauber, ein dicker Pluspunkt.",
    "We had a bite to eat in Troia.",
    "",
  ])("is not in %j", (text) => {
    expect(wordsIn(text)).toEqual([]);
  });

  test.each(Object.entries(FOREIGN_WORDS))(
    "uses only %s words from the library's list",
    (language, words) => {
      const known = new Set(profaneWords.get(language));
      expect(words.filter((word) => !known.has(word))).toEqual([]);
    },
  );

  test("is found for every word of the library, alone or in a sentence", () => {
    const library = new Profanity({ languages: ["en"], unicodeWordBoundaries: true });
    library.addWords(Object.values(FOREIGN_WORDS).flat());
    const all = [...(profaneWords.get("en") ?? []), ...Object.values(FOREIGN_WORDS).flat()];
    const harmless = "cox wang flange kum kummer hoar hoare pawn dink spac".split(" ");
    const missed = all
      .filter((word) => !harmless.includes(word))
      .filter((word) =>
        [word, `So ${word}, then.`, `(${word.toUpperCase()})`].some(
          (text) => library.exists(text) && wordsIn(text).length === 0,
        ),
      );
    expect(missed).toEqual([]);
  });
});

const wordsIn = createProfanityFinder();
