/*
 * A strict parser of the Prometheus text format 0.0.4. Every metric family has HELP and TYPE lines before its samples, its
 * samples are consecutive, no series occurs twice, and the buckets of histograms add up.
 */

export interface Exposition {
  readonly types: ReadonlyMap<string, string>;
  /** The samples by series, spelled as in the text: `name{label="value"}`. */
  readonly values: ReadonlyMap<string, number>;
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"';
const SAMPLE = new RegExp(`^(${NAME})(\\{(?:${LABEL}(?:,${LABEL})*)?\\})? (\\S+)$`);
const COMMENT = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`);
const SUFFIXES = ["_bucket", "_sum", "_count"];

export function parsePrometheus(text: string): Exposition {
  if (!text.endsWith("\n")) throw new Error("The last line does not end.");
  const help = new Set<string>();
  const types = new Map<string, string>();
  const values = new Map<string, number>();
  let family = "";
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, kind, named = "", rest = ""] = COMMENT.exec(line) ?? [];
    if (kind === "HELP") {
      if (help.has(named)) throw new Error(`${named} comes twice.`);
      help.add((family = named));
    } else if (kind === "TYPE") {
      if (named !== family || !["counter", "gauge", "histogram"].includes(rest))
        throw new Error(`Not a type: ${line}`);
      types.set(named, rest);
    } else takeSample(line, { family, types, values });
  }
  checkHistograms({ types, values });
  return { types, values };
}

function takeSample(
  line: string,
  into: { family: string; types: Map<string, string>; values: Map<string, number> },
): void {
  const [, name = "", labels = "", number = ""] = SAMPLE.exec(line) ?? [];
  const type = into.types.get(into.family);
  const own = type === "histogram" ? SUFFIXES.map((suffix) => into.family + suffix) : [into.family];
  if (!own.includes(name)) throw new Error(`Not a sample of ${into.family}: ${line}`);
  if (type === "counter" && !name.endsWith("_total")) throw new Error(`No total: ${line}`);
  const series = name + labels;
  const value = Number(number);
  if (number === "" || Number.isNaN(value)) throw new Error(`Not a number: ${line}`);
  if (into.values.has(series)) throw new Error(`${series} comes twice.`);
  into.values.set(series, value);
}

function checkHistograms({ types, values }: Exposition): void {
  const last = new Map<string, number>();
  for (const [series, value] of values) {
    const [name = ""] = series.split("{");
    const family = name.replace(/_bucket$/, "");
    if (name === family || types.get(family) !== "histogram") continue;
    const rest = series.slice(name.length).replace(/le="[^"]+",?|,le="[^"]+"/, "");
    const [, le] = /le="([^"]+)"/.exec(series) ?? [];
    const key = family + (rest === "{}" ? "" : rest);
    if (value < (last.get(key) ?? 0)) throw new Error(`${series} is below the bucket before.`);
    last.set(key, value);
    if (le === "+Inf" && values.get(key.replace(family, `${family}_count`)) !== value)
      throw new Error(`${series} is not the count.`);
  }
}
