// Requests the erasure of a person (contract 10.8); see `bun run erase --help`. The maintenance job of a dispatcher
// erases the data.
import type { RawDb } from "../../db/client.ts";
import { serverTime } from "../../db/server.ts";
import { examine } from "../http/fields.ts";
import { toFieldErrors } from "../http/rules.ts";
import { isoInstant, systemClock } from "../lib/clock.ts";
import { commandLine } from "../../db/executable.ts";
import { erasureErrors, requestErasure } from "../tenants/actions/erasures.ts";
import { type Erasure, ErasureBody, type NewErasure } from "../tenants/erasure-model.ts";
import { erasuresOf } from "../tenants/queries/erasures.ts";
import { runWithDatabase, UsageError } from "./with-database.ts";

const HELP = `Erases the data of a person from the database in DATABASE_URL. Without arguments, lists the last erasures.

  ${commandLine("erase")} user <id>
  ${commandLine("erase")} reviewer [<email>] [--review <id> …] [--partner <id>] [--account <id>]

If <email> is \`-\`, it is read from standard input, so that it does not appear in the shell history or the process list.`;

const text = { type: "string" } as const;
const OPTIONS = { review: { ...text, multiple: true }, partner: text, account: text } as const;
const MAX_LISTED = 20;

await runWithDatabase(
  { name: "erase", help: HELP, options: OPTIONS },
  async ({ db, box }, { values, positionals }) => {
    const { help: _help, ...given } = values;
    const body = await bodyOf(positionals, given);
    if (body !== undefined) {
      const errors = await fieldErrors(db, body);
      for (const [field, texts] of Object.entries(errors))
        console.error(`${field} ${texts.join(", ")}`);
      if (Object.keys(errors).length > 0) return 1;
      const now = await serverTime(db);
      await requestErasure({ db, box, clock: { ...systemClock, now: () => now } }, null, body);
    }
    const page = { limit: MAX_LISTED, after: undefined };
    for (const one of (await erasuresOf(db, page)).slice(0, MAX_LISTED)) console.log(lineOf(one));
    return 0;
  },
);

/**
 * Reads the body of the erasure from the arguments. Returns undefined without arguments; the command then only lists
 * erasures. Throws an error for arguments that identify no person.
 */
async function bodyOf(
  [command, given, ...more]: readonly string[],
  options: Readonly<Record<string, unknown>>,
): Promise<NewErasure | undefined> {
  const { review, partner, account } = options;
  const hasOptions = Object.keys(options).length > 0;
  const isNone = command === undefined && !hasOptions;
  if (isNone) return undefined;
  if (command === "user" && given !== undefined && more.length === 0 && !hasOptions)
    return { user_id: Number(given) };
  if (command !== "reviewer" || more.length > 0 || (given === undefined && review === undefined))
    throw new UsageError("These arguments do not identify a person. See --help.");
  const email = given === "-" ? (await Bun.stdin.text()).trim() : given;
  return {
    ...(email !== undefined && { reviewer_email: email }),
    ...(Array.isArray(review) && { review_ids: review.map(Number) }),
    ...(partner !== undefined && { partner_id: Number(partner) }),
    ...(account !== undefined && { account_id: Number(account) }),
  };
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
