import type { Prng } from "../simulation/prng.ts";

/** The inputs that a fuzz mutates, and the tokens that it inserts; one character per byte. */
export interface Corpus {
  readonly seeds: readonly string[];
  readonly tokens: readonly string[];
}

const MAX_EDITS = 4;
const MAX_REPEATS = 600;

/** Returns the input number `index` of a run: first each seed as it is, then mutated ones. */
export function inputAt(index: number, corpus: Corpus, prng: Prng): string {
  return corpus.seeds[index] ?? mutate(corpus, prng);
}

/**
 * Mutates a seed: inserts bytes and tokens, and removes parts, doubles them, or replaces them by parts of other
 * seeds.
 */
function mutate({ seeds, tokens }: Corpus, prng: Prng): string {
  let text = prng.pick(seeds);
  // Mostly one edit: a parser rejects the first damage, and later code never sees the others.
  const edits = prng.chance(0.6) ? 1 : prng.int(2, MAX_EDITS);
  for (let i = 0; i < edits; i++) {
    const [from, to] = span(text, prng);
    text =
      text.slice(0, from) +
      replacement(text.slice(from, to), { seeds, tokens }, prng) +
      text.slice(to);
  }
  return text;
}

/** Chooses the part to edit: mostly up to 3 bytes, sometimes longer. */
function span(text: string, prng: Prng): [from: number, to: number] {
  const from = prng.int(0, text.length);
  const length = prng.chance(0.1) ? prng.int(0, text.length) : prng.int(0, 3);
  return [from, Math.min(text.length, from + length)];
}

function replacement(part: string, { seeds, tokens }: Corpus, prng: Prng): string {
  const kind = prng.int(0, 6);
  if (kind === 0) return "";
  if (kind === 1) return part + part;
  if (kind === 2) return String.fromCharCode(prng.int(0, 255));
  if (kind === 3) return part + prng.pick(tokens).repeat(prng.int(1, MAX_REPEATS));
  if (kind === 4) {
    const other = prng.pick(seeds);
    const at = prng.int(0, other.length);
    return other.slice(at, at + prng.int(0, 40));
  }
  return part + prng.pick(tokens);
}

/** Cuts a text into pieces, as a network might deliver it. */
export function cut(text: string, prng: Prng): string[] {
  const places = Array.from({ length: prng.int(1, 6) }, () => prng.int(0, text.length));
  const edges = [0, ...places.toSorted((a, b) => a - b), text.length];
  return edges.slice(1).map((edge, i) => text.slice(edges[i], edge));
}
