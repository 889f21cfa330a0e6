// Erases a person (contract 10.8); the server's settings name the database and the master key, and a dispatcher does the work.
//
// - `bun run erase` lists the erasures.
// - `bun run erase user <id>` erases a user.
// - `bun run erase reviewer [<email>] [--review <id> …] [--partner <id>] [--account <id>]` erases a reviewer.
import { parseArgs } from "node:util";

import { connect, type RawDb } from "../db/client.ts";
import { driverError } from "../db/driver.ts";
import { causeOf } from "../db/errors.ts";
import { schemaError } from "../db/migrate.ts";
import { serverTime } from "../db/server.ts";
import { examine } from "../src/http/fields.ts";
import { toFieldErrors } from "../src/http/rules.ts";
import { isoInstant, systemClock } from "../src/lib/clock.ts";
import { ConfigError, EXIT_CONFIG, readConfig } from "../src/lib/config.ts";
import { createSecretBox } from "../src/lib/secret-box.ts";
import { erasureErrors, requestErasure } from "../src/tenants/actions/erasures.ts";
import { type Erasure, ErasureBody, type NewErasure } from "../src/tenants/erasure-model.ts";
import { erasuresOf } from "../src/tenants/queries/erasures.ts";

const USAGE =
  "Usage: bun run erase [user <id> | reviewer [<email>] [--review <id> …] [--partner <id>] [--account <id>]]";
/** EX_USAGE of sysexits.h. */
const EXIT_USAGE = 64;
const LISTED = 20;

async function main(args: readonly string[]): Promise<number> {
  const body = bodyOf(args);
  if (body === undefined) {
    console.error(USAGE);
    return EXIT_USAGE;
  }
  const fault = driverError();
  if (fault !== undefined) throw new ConfigError([fault]);
  const config = readConfig();
  const db = connect(config.databaseUrl, { max: 1, name: "reviewrelay-erase" });
  try {
    const lacking = await schemaError(db);
    if (lacking !== undefined) throw new ConfigError([lacking]);
    const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
    if (body !== null) {
      const errors = await fieldErrors(db, body);
      for (const [field, texts] of Object.entries(errors))
        console.error(`${field} ${texts.join(", ")}`);
      if (Object.keys(errors).length > 0) return 1;
      const now = await serverTime(db);
      await requestErasure({ db, box, clock: { ...systemClock, now: () => now } }, null, body);
    }
    const page = { limit: LISTED, after: undefined };
    for (const one of (await erasuresOf(db, page)).slice(0, LISTED)) console.log(lineOf(one));
    return 0;
  } finally {
    await db.close();
  }
}

/** Reads the arguments; null for a list, undefined if they are not those of the usage. */
function bodyOf(args: readonly string[]): NewErasure | null | undefined {
  const option = { type: "string" } as const;
  const options = {
    review: { ...option, multiple: true },
    partner: option,
    account: option,
  } as const;
  const { values, positionals } = parsed(() =>
    parseArgs({ args: [...args], options, allowPositionals: true }),
  ) ?? { values: {}, positionals: ["?"] };
  const [command, given, ...more] = positionals;
  const { review, partner, account } = values;
  const hasOptions = Object.keys(values).length > 0;
  if (more.length > 0) return undefined;
  if (command === undefined) return hasOptions ? undefined : null;
  if (command === "user")
    return given === undefined || hasOptions ? undefined : { user_id: Number(given) };
  if (command !== "reviewer" || (given === undefined && review === undefined)) return undefined;
  return {
    ...(given !== undefined && { reviewer_email: given }),
    ...(review !== undefined && { review_ids: review.map(Number) }),
    ...(partner !== undefined && { partner_id: Number(partner) }),
    ...(account !== undefined && { account_id: Number(account) }),
  };
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

async function fieldErrors(db: RawDb, body: NewErasure) {
  const examined = examine(ErasureBody, body);
  return "value" in examined
    ? toFieldErrors(await erasureErrors({ db }, examined.value))
    : examined.fieldErrors;
}

function lineOf({ id, kind, state, requestedAt, counts }: Erasure): string {
  const rows = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
  return [id, kind.padEnd(8), state.padEnd(7), isoInstant(requestedAt), rows.join(", ")]
    .join("  ")
    .trimEnd();
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const cause = causeOf(error);
  console.error(cause instanceof Error ? cause.message : cause);
  process.exitCode = error instanceof ConfigError ? EXIT_CONFIG : 1;
}
