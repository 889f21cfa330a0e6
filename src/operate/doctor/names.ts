// Finds environment variables that look like misspelt settings, and settings of earlier versions.
import { ConfigError, readConfig, removedSettings } from "../../lib/config.ts";
import type { Env } from "../../lib/settings-reader.ts";
import { advice, type Finding } from "./finding.ts";

/** Prefixes of environment variables that only settings of ReviewRelay have. */
const OWN_PREFIXES = [
  "WEBHOOK",
  "RETENTION",
  "RETRY_",
  "RATE_LIMIT",
  "MASTER_KEY",
  "SIGN_IN_",
  "SESSION_",
  "SECURITY_MAIL",
  "BATCH_HOUR",
  "TRUSTED_PROX",
  "AUDIT_RETENTION",
  "HISTORY_RETENTION",
];
/**
 * A variable that only the commands for partners read. It is not reported as unknown, and is never suggested for a
 * misspelt name.
 */
const PARTNER_VARIABLE = "WEBHOOK_SECRET";
/** Settings that `readConfig` does not read: those of the demo and of `setup`. */
const OTHER_SETTINGS = [
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
 * The number of edits by which a name with one of `OWN_PREFIXES` may differ from a setting, as a share of its length.
 * For example, `WEBHOOK_ALLOWED_NETS` is recognised as `WEBHOOK_ALLOWED_NETWORKS`.
 */
const MAX_SHARE = 0.25;
/**
 * Minimum length at which a name without one of `OWN_PREFIXES` is compared with the settings. Shorter names of other
 * variables resemble settings: `HOME` and `HOST` differ in two letters.
 */
const MIN_CHARS = 7;

/**
 * Returns advice for each environment variable that is a removed setting or looks like a misspelt one. The advice does
 * not contain the value of the variable.
 */
export function unknownSettings(env: Env): Finding[] {
  const known = knownNames();
  const removed = removedSettings(env);
  return Object.keys(env).flatMap((name) => {
    if (removed.includes(name))
      return [advice(`${name} has no effect any more`, "Remove it; CHANGELOG.md has the reason.")];
    if (known.has(name) || name === PARTNER_VARIABLE) return [];
    const isOurs = OWN_PREFIXES.some((prefix) => name.startsWith(prefix));
    const meant = settingFor(name, isOurs, [...known]);
    if (meant === undefined && !isOurs) return [];
    const guess = meant === undefined ? "" : `Is it ${meant}? `;
    return [
      advice(`${name} is not a setting`, `${guess}docs/operations/settings.md lists them all.`),
    ];
  });
}

/**
 * Collects the names of all settings: those of `OTHER_SETTINGS`, and those that `readConfig` reads from an empty
 * environment.
 */
function knownNames(): Set<string> {
  const names = new Set(OTHER_SETTINGS);
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
    // A ConfigError is ignored, because the environment is empty and lacks the required settings.
    if (!(error instanceof ConfigError)) throw error;
  }
  return names;
}

function settingFor(name: string, isOurs: boolean, known: readonly string[]): string | undefined {
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
