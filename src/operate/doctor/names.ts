// Finds environment variables that look like misspelt settings.
import { ConfigError, readConfig } from "../../lib/config.ts";
import type { Env } from "../../lib/settings-reader.ts";
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
/** A variable of commands that partners use. It is known, but no setting that a misspelt one could mean. */
const OF_PARTNERS = "WEBHOOK_SECRET";
/** Settings that `readConfig` does not read: those of the demo and of `setup`. */
const ELSEWHERE = [
  "DATA_DIR",
  "DISPATCHERS",
  "SETUP_COMPANY",
  "SETUP_ADMIN_EMAIL",
  "SETUP_ADMIN_NAME",
  "SETUP_PLANS",
  "SETUP_REVIEW_SITES",
];
const MAX_EDITS = 2;
/** A name with one of our prefixes may differ by this share of its characters, such as `WEBHOOK_ALLOWED_NETS`. */
const MAX_SHARE = 0.25;
/**
 * Shorter names are not compared, because they are too similar to common variables: `HOME` has two letters of `HOST`.
 */
const MIN_CHARS = 7;

/** Returns one piece of advice per suspicious variable, without its value. */
export function unknownSettings(env: Env): Finding[] {
  const known = knownNames();
  return Object.keys(env).flatMap((name) => {
    if (known.has(name) || name === OF_PARTNERS) return [];
    const isOurs = PREFIXES.some((prefix) => name.startsWith(prefix));
    const meant = meantBy(name, isOurs, [...known]);
    if (meant === undefined && !isOurs) return [];
    const guess = meant === undefined ? "" : `Is it ${meant}? `;
    return [
      advice(`${name} is not a setting`, `${guess}docs/operations/settings.md lists them all.`),
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

function meantBy(name: string, isOurs: boolean, known: readonly string[]): string | undefined {
  if (name.length < MIN_CHARS && !isOurs) return undefined;
  const most = isOurs ? Math.max(MAX_EDITS, name.length * MAX_SHARE) : MAX_EDITS;
  const [nearest] = known
    .map((one) => ({ one, edits: editsBetween(name, one) }))
    .toSorted((a, b) => a.edits - b.edits);
  return nearest !== undefined && nearest.edits <= most ? nearest.one : undefined;
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
