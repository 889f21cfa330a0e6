import type { Db, DbOrTx } from "../../../db/client.ts";
import type { Caller } from "../../http/principal.ts";
import { encodeCursor } from "../../http/list.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { checkNewWebhookUrl } from "../../lib/egress.ts";
import type { Log } from "../../lib/log.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { hmacSha256Hex, newSecret, standardSecret } from "../../lib/secrets.ts";
import { standardSignature, standardTimestamp } from "../../outbox/payload-format.ts";
import { type Posted, postErrorOf } from "../../outbox/tls-reason.ts";
import { settledThrough } from "../../outbox/settled-ids.ts";
import type { AuditWebhookBody, AuditWebhookShown } from "../audit-webhook-model.ts";
import { recordAudit } from "../queries/audit.ts";
import * as queries from "../queries/audit-webhook.ts";
import { auditLines } from "./export-audit.ts";

interface WebhookDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
}

/** The associated data of the sealed secret. */
const CONTEXT = "audit-webhook:platform";

/** Reads the settings and the progress of the audit webhook. Throws `not_found` if there is none. */
export async function showAuditWebhook({ db }: Pick<WebhookDeps, "db">) {
  const found = await queries.auditWebhookOf(db);
  if (found === undefined) throw new Problem("not_found");
  return withProgress(db, found);
}

async function withProgress(db: DbOrTx, found: queries.AuditWebhook): Promise<AuditWebhookShown> {
  const { afterId, failures, failedAt, lastError, nextAt } = found;
  return {
    ...found,
    cursor: afterId === 0 ? null : encodeCursor(String(afterId)),
    oldestWaitingAt: (await queries.firstAuditAfter(db, afterId)) ?? null,
    lastError: failedAt === null ? null : { at: failedAt, error: lastError ?? "" },
    nextAttemptAt: failures === 0 ? null : nextAt,
  };
}

/** Checks that POSTs to the URL are allowed. */
export async function auditWebhookErrors(
  config: Pick<Config, "egress">,
  { url }: { readonly url?: string | undefined },
): Promise<RuleErrors> {
  const check = url === undefined ? undefined : await checkNewWebhookUrl(url, config.egress);
  return { url: check?.kind === "refused" ? check.reason : undefined };
}

/**
 * Sets the address and the start of the audit webhook, and makes a new secret. Without `start`, an existing webhook
 * continues where it is, and a new one begins with the rows that are written from now on. Throws `unavailable` as
 * `settledThrough` does.
 */
export async function putAuditWebhook(
  deps: WebhookDeps,
  { principal: actor, requestContext }: Caller,
  { url, start }: AuditWebhookBody,
) {
  const { db, box, clock } = deps;
  const now = clock.now();
  const secret = newSecret();
  const afterId = start === "oldest" ? 0 : await settledThrough(deps, "audit_log");
  const set = { url, sealedSecret: box.seal(secret, CONTEXT), afterId, isMoved: start != null };
  const saved = await db.transaction(async (tx) => {
    const row = await queries.putAuditWebhook(tx, set, now);
    const details = { start: start ?? null, ...hostOf(url) };
    await recordAudit(tx, { at: now, action: "AUDIT_WEBHOOK_SET", actor, requestContext, details });
    // Read before the commit: nothing may fail between the commit and the answer, which alone shows the secret.
    return withProgress(tx, row);
  });
  return { ...saved, secret: standardSecret(secret) };
}

/** Ends the audit webhook. Throws `not_found` if there is none. */
export async function removeAuditWebhook(
  { db, clock }: Pick<WebhookDeps, "db" | "clock">,
  { principal: actor, requestContext }: Caller,
): Promise<void> {
  const at = clock.now();
  await db.transaction(async (tx) => {
    const removed = await queries.deleteAuditWebhook(tx);
    if (removed === undefined) throw new Problem("not_found");
    const details = hostOf(removed.url);
    await recordAudit(tx, { at, action: "AUDIT_WEBHOOK_REMOVED", actor, requestContext, details });
  });
}

/** Names only the host for the audit log, because user, path and query may hold a secret. */
const hostOf = (url: string) => ({ host: URL.parse(url)?.host ?? null });

/** The most rows of one POST. */
const POSTED_ROWS = 500;
const FIRST_PAUSE_MS = 5_000;
/** The longest pause in milliseconds after a failed POST. */
export const LONGEST_PAUSE_MS = 300_000;
const ERROR_CHARS = 200;

interface ForwardDeps extends WebhookDeps {
  readonly log: Log;
  readonly deliver: (request: {
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
  }) => Promise<Posted>;
}

/**
 * Posts the audit log to the audit webhook, in the order of the ids (contract 3.12). The position moves only after a 2xx,
 * by a statement that compares the settings and the position. A process that dies in between, or that two processes run
 * at once, therefore repeats rows and skips none.
 */
export class AuditForwarder {
  readonly #deps: ForwardDeps;

  constructor(deps: ForwardDeps) {
    this.#deps = deps;
  }

  /** Posts the next rows. `next` is set if the POST was full and accepted, which means that more rows may be waiting. */
  async chunk(): Promise<{ readonly rows: number; readonly next?: string }> {
    const { db, clock, log, deliver } = this.#deps;
    const webhook = await queries.dueAuditWebhook(db, clock.now());
    if (webhook === undefined) return { rows: 0 };
    const through = await settledThrough(this.#deps, "audit_log");
    const slice = { after: String(webhook.afterId), through, limit: POSTED_ROWS };
    const { lines, last } = await auditLines(db, null, slice);
    if (last === undefined) return { rows: 0 };
    const rows = lines.length;
    const posted = await deliver(this.#requestOf(webhook, `[${lines.join()}]`, last));
    const now = clock.now();
    if (posted.kind === "accepted") {
      const settled = { failures: 0, lastError: null, failedAt: null };
      const moved = { ...settled, afterId: Number(last), deliveredAt: now };
      if (!(await queries.movePosted(db, webhook, moved))) return { rows: 0 };
      return rows === POSTED_ROWS ? { rows, next: "" } : { rows };
    }
    const { failures } = webhook;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 20), LONGEST_PAUSE_MS);
    const error = postErrorOf(posted).slice(0, ERROR_CHARS);
    const failed = { failures: failures + 1, lastError: error, failedAt: now };
    await queries.movePosted(db, webhook, { ...failed, nextAt: addMs(now, pauseMs) });
    log.warn("audit_webhook.failed", { error, failures: failures + 1 });
    return { rows: 0 };
  }

  #requestOf(webhook: queries.AuditWebhook, body: string, last: string) {
    const { url, version, afterId, sealedSecret } = webhook;
    // A repeated POST of the same rows has the same id.
    const id = `audit-${version}-${afterId}-${last}`;
    const timestamp = standardTimestamp(this.#deps.clock.now());
    const secret = this.#deps.box.open(sealedSecret, CONTEXT);
    const headers = {
      "Content-Type": "application/json",
      "User-Agent": "ReviewRelay/1.0 (audit)",
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": standardSignature(hmacSha256Hex(secret, `${id}.${timestamp}.${body}`)),
    };
    return { url, headers, body };
  }
}
