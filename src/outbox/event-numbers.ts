/** The most numbers of events in one text. A filter of deliveries loads all of them at once (contract 6.19). */
export const MAX_NUMBERS = 500;
const RANGE_PATTERN = /^[1-9]\d{0,15}(-[1-9]\d{0,15})?$/;

/** The numbers of events from `first` to `last` (contract 7.19). */
export interface EventNumbers {
  readonly first: number;
  readonly last: number;
}

/** Returns the count of the numbers in these ranges. */
export const countNumbers = (ranges: readonly EventNumbers[]): number =>
  ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);

/** Parses numbers of events and ranges, such as `17-25,31`; undefined if the text is invalid. */
export function readRanges(text: string): readonly EventNumbers[] | undefined {
  const parts = text.split(",");
  if (!parts.every((one) => RANGE_PATTERN.test(one))) return undefined;
  const ranges = parts.map((one) => {
    const [first = 0, last = first] = one.split("-").map(Number);
    return { first, last };
  });
  const areValid = ranges.every(({ first, last }) => first <= last && Number.isSafeInteger(last));
  return areValid ? ranges : undefined;
}

/** Parses at most `MAX_NUMBERS` numbers; undefined if the text is invalid or names more. */
export function readNumbers(text: string): readonly EventNumbers[] | undefined {
  const ranges = readRanges(text);
  return ranges !== undefined && countNumbers(ranges) <= MAX_NUMBERS ? ranges : undefined;
}

/** Writes numbers in their shortest form: `[31, 17, 18]` as `17-18,31`. */
export function numbersText(numbers: readonly number[]): string {
  const ranges: { first: number; last: number }[] = [];
  for (const number of [...new Set(numbers)].toSorted((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range?.last === number - 1) range.last = number;
    else ranges.push({ first: number, last: number });
  }
  return rangesText(ranges);
}

/** Writes ranges, each of one number as this number alone. */
export const rangesText = (ranges: readonly EventNumbers[]): string =>
  ranges.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(",");

/** Divides ranges into texts of at most `most` numbers each. */
export function numbersInParts(ranges: readonly EventNumbers[], most: number): string[] {
  const parts: EventNumbers[][] = [[]];
  for (const range of ranges)
    for (let { first } = range; first <= range.last;) {
      let part = parts.at(-1) ?? [];
      if (countNumbers(part) === most) parts.push((part = []));
      const last = Math.min(range.last, first + most - countNumbers(part) - 1);
      part.push({ first, last });
      first = last + 1;
    }
  return parts.map(rangesText).filter((text) => text !== "");
}
