import type { Prng } from "../simulation/prng.ts";

/** What a fuzz begins with, and what it puts in: one character per byte. */
export interface Corpus {
  readonly seeds: readonly string[];
  readonly tokens: readonly string[];
}

const MAX_EDITS = 4;
const MAX_REPEATS = 600;

/** A seed with some damage: bytes and tokens put in, parts taken out, doubled, or replaced by a part of another seed. */
export function mutate({ seeds, tokens }: Corpus, prng: Prng): string {
  let text = prng.pick(seeds);
  // One edit mostly: of many, the first reader refuses the first, and nobody behind it sees the others.
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

/** A place or a short part mostly, and sometimes a long one. */
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

/** The text in pieces, as a network might cut it. */
export function cut(text: string, prng: Prng): string[] {
  const places = Array.from({ length: prng.int(1, 6) }, () => prng.int(0, text.length));
  const edges = [0, ...places.toSorted((a, b) => a - b), text.length];
  return edges.slice(1).map((edge, i) => text.slice(edges[i], edge));
}
