// Finds environment variables that look like misspelt settings.
import { ConfigError, readConfig } from "../../src/lib/config.ts";
import type { Env } from "../../src/lib/settings-reader.ts";
import { advice, type Finding } from "./finding.ts";

/** Prefixes that only our settings use. */
const PREFIXES = [
  "WEBHOOK",
  "RETENTION",
  "RETRY_",
  "RATE_LIMIT",
  "MASTER_KEY",
  "SIGN_IN_",
  "SESSION_",
  "SECURITY_MAIL",
  "OTP_",
  "LOCK_SCHEDULE",
  "BATCH_HOUR",
  "TRUSTED_PROX",
  "AUDIT_RETENTION",
  "HISTORY_RETENTION",
];
/** Settings that `readConfig` does not read: those of commands, of the demo and of `setup`. */
const ELSEWHERE = [
  "WEBHOOK_SECRET",
  "DATA_DIR",
  "DISPATCHERS",
  "SETUP_COMPANY",
  "SETUP_ADMIN_EMAIL",
  "SETUP_ADMIN_NAME",
  "SETUP_PLANS",
  "SETUP_REVIEW_SITES",
];
const MAX_EDITS = 2;
/**
 * Shorter names are not compared, because they are too similar to common variables: `HOME` has two letters of `HOST`.
 */
const MIN_CHARS = 7;

/** Returns one piece of advice per suspicious variable, without its value. */
export function unknownSettings(env: Env): Finding[] {
  const known = knownNames();
  return Object.keys(env).flatMap((name) => {
    if (known.has(name)) return [];
    const meant = meantBy(name, [...known]);
    if (meant === undefined) return [];
    return [
      advice(
        `${name} is not a setting`,
        `Is it ${meant}? docs/operations/settings.md lists them all.`,
      ),
    ];
  });
}

/** Collects the names of all settings by recording which ones `readConfig` reads. */
function knownNames(): Set<string> {
  const names = new Set(ELSEWHERE);
  const listener = new Proxy<Record<string, undefined>>(
    {},
    {
      get(_, name) {
        names.add(String(name));
      },
    },
  );
  try {
    readConfig(listener);
  } catch (error) {
    // Required settings are absent in the recording, so this error is expected.
    if (!(error instanceof ConfigError)) throw error;
  }
  return names;
}

function meantBy(name: string, known: readonly string[]): string | undefined {
  const [nearest] = known
    .map((one) => ({ one, edits: editsBetween(name, one) }))
    .toSorted((a, b) => a.edits - b.edits);
  if (nearest === undefined) return undefined;
  const isNear = name.length >= MIN_CHARS && nearest.edits <= MAX_EDITS;
  const isOurs = PREFIXES.some((prefix) => name.startsWith(prefix));
  return isNear || isOurs ? nearest.one : undefined;
}

/** Returns the number of insertions, deletions and substitutions between two words (Levenshtein distance). */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, char] of from.split("").entries()) {
    const next = [i + 1];
    for (const [j, other] of to.split("").entries()) {
      const replaced = (row[j] ?? 0) + (char === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
