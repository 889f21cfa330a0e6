/**
 * Minimum and maximum password length, which the API enforces (contract 4.17). The estimated strength is only a
 * hint for the user.
 */
export const PASSWORD_LENGTH = { min: 8, max: 128 } as const;

interface Strength {
  /** Strength from 0 (too short) to 4 (strong). */
  readonly level: number;
  readonly word: string;
}

const WORDS = ["Too short", "Easy to guess", "Fair", "Good", "Strong"] as const;

/**
 * Estimates the strength of a password in bits: the number of characters that do not follow from the characters
 * before them, times the entropy per character. A long sentence scores higher than a short word with symbols.
 */
export function strengthOf(password: string): Strength {
  const letters = Array.from(password);
  if (letters.length < PASSWORD_LENGTH.min) return strengthAt(0);
  const fresh = letters.filter((one, i) => !isExpected(letters, one, i)).length;
  const bits = fresh * Math.log2(alphabetOf(password));
  return strengthAt([36, 52, 70].filter((limit) => bits >= limit).length + 1);
}

const strengthAt = (level: number): Strength => ({ level, word: WORDS[level] ?? "" });

/** Returns whether a character repeats the previous character, or continues a sequence such as `abc` or `321`. */
function isExpected(letters: readonly string[], one: string, i: number): boolean {
  const step = (from: number) =>
    (letters[from]?.codePointAt(0) ?? 0) - (letters[from - 1]?.codePointAt(0) ?? 0);
  if (i > 0 && letters[i - 1] === one) return true;
  return i > 1 && Math.abs(step(i)) === 1 && step(i) === step(i - 1);
}

function alphabetOf(password: string): number {
  const kinds: readonly [RegExp, number][] = [
    [/[a-z]/, 20],
    [/[A-Z]/, 20],
    [/\d/, 10],
    [/[^a-zA-Z\d]/, 20],
    [/[^\u0020-\u007e]/, 60],
  ];
  return Math.max(
    2,
    kinds.filter(([kind]) => kind.test(password)).reduce((sum, [, size]) => sum + size, 0),
  );
}
