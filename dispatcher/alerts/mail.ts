import type { Tx } from "../../db/client.ts";
import { addMs } from "../../src/lib/clock.ts";
import type { SecretBox } from "../../src/lib/secret-box.ts";
import { ALERT_DEFAULTS } from "../../src/outbox/alert.ts";
import { queueMails, type NewMail } from "../../src/outbox/mail.ts";
import type { Cause } from "./cause.ts";
import * as queries from "./queries.ts";
import type { PartnerRow, SettingsRow, UnmailedRow } from "./queries.ts";
import { alertMail, type Recipient } from "./words.ts";

export interface MailDeps {
  readonly box: SecretBox;
  readonly config: { readonly serverRoot: string };
}

const MINUTE_MS = 60_000;

/** Queues one mail to each recipient of those of the partners whose turn it is, with all that there is to tell them. */
export async function mailAlerts(
  tx: Tx,
  deps: MailDeps,
  { partnerIds, at }: { readonly partnerIds: readonly number[]; readonly at: Date },
): Promise<boolean> {
  const unmailed = await queries.unmailedAlerts(tx, partnerIds);
  const waiting = Map.groupBy(unmailed, (one) => one.partnerId);
  if (waiting.size === 0) return false;
  const ids = [...waiting.keys()];
  const settings = await queries.settingsOf(tx, ids);
  const mailedAt = await queries.lastMailedAt(tx, ids);
  const partners = await queries.partnersOf(tx, ids);
  const mails: NewMail[] = [];
  const told: string[] = [];
  for (const [id, rows] of waiting) {
    const own = settings.get(id);
    if (!isTurn(rows, mailedAt.get(id), { own, at })) continue;
    told.push(...rows.map((row) => row.id));
    const alerts = rows.map((row) => ({ ...row, cause: causeIn(row) }));
    for (const to of recipientsOf(partners.get(id) ?? [], own))
      mails.push(alertMail(alerts, to, deps.config));
  }
  await queries.markMailed(tx, told, at);
  await queueMails(tx, deps, mails, at);
  return mails.length > 0;
}

/** Nothing is delivered any more once it is disabled, so that waits for no digest. */
function isTurn(
  rows: readonly UnmailedRow[],
  last: Date | undefined,
  { own, at }: { readonly own: SettingsRow | undefined; readonly at: Date },
): boolean {
  const { digestMinutes } = own ?? ALERT_DEFAULTS;
  const isDue = last === undefined || addMs(last, digestMinutes * MINUTE_MS) <= at;
  return isDue || rows.some((row) => row.kind === "disabled");
}

function recipientsOf(
  partner: readonly PartnerRow[],
  settings: SettingsRow | undefined,
): readonly Recipient[] {
  const [first] = partner;
  if (first === undefined) return [];
  const brand = {
    brand: first.whiteLabelEnabled ? first.brandName : null,
    primaryColor: first.primaryColor,
  };
  const named = settings?.recipients?.map((email) => ({ email, name: null, ...brand }));
  if (named !== undefined) return named;
  return partner.flatMap(({ email, name }) => (email === null ? [] : [{ email, name, ...brand }]));
}

/** `look.ts` alone writes causes, so each has the shape that it gave them. */
function causeIn({ cause }: Pick<UnmailedRow, "cause">): Cause {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return cause as Cause;
}
