import { Type, type Static } from "@sinclair/typebox";

import * as queries from "./queries.ts";
import type { Db, DbOrTx } from "../../db/client.ts";
import { encodeCursor } from "../http/list.ts";
import { type Caller, literals } from "../http/principal.ts";
import type { RuleErrors } from "../http/rules.ts";
import type { RowOf } from "../http/shown.ts";
import { instantAnswer, orNull, receiving, secretText, storableText } from "../http/text.ts";
import { addMs, type Clock } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import { checkNewWebhookUrl, MAX_URL_CHARS } from "../lib/egress.ts";
import type { Log } from "../lib/log.ts";
import { Problem } from "../lib/problem.ts";
import type { SecretBox } from "../lib/secrets.ts";
import { hmacSha256Hex, newSecret, standardSecret } from "../lib/secrets.ts";
import { standardSignature, standardTimestamp } from "../outbox/payload-format.ts";
import { settledThrough } from "../outbox/settled-ids.ts";
import { type Posted, postErrorOf } from "../outbox/tls-reason.ts";
import { auditLines } from "./export.ts";
import { recordAudit } from "./queries.ts";

interface WebhookDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
}

/** The associated data with which the secret of the audit webhook is sealed. */
const SECRET_CONTEXT = "audit-webhook:platform";

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

/** Returns the validation error of a URL to which POSTs are not allowed. */
export async function auditWebhookErrors(
  config: Pick<Config, "egress">,
  { url }: { readonly url?: string | undefined },
): Promise<RuleErrors> {
  const check = url === undefined ? undefined : await checkNewWebhookUrl(url, config.egress);
  return { url: check?.kind === "refused" ? check.reason : undefined };
}

/**
 * Sets the URL and the start of the audit webhook, and creates a new secret. Without `start`, an existing webhook
 * continues at its position, and a new one begins with the rows that are written from now on. Throws `unavailable` like
 * `settledThrough`.
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
  const set = {
    url,
    sealedSecret: box.seal(secret, SECRET_CONTEXT),
    afterId,
    isMoved: start != null,
  };
  const saved = await db.transaction(async (tx) => {
    const row = await queries.putAuditWebhook(tx, set, now);
    const details = { start: start ?? null, ...hostOf(url) };
    await recordAudit(tx, { at: now, action: "AUDIT_WEBHOOK_SET", actor, requestContext, details });
    // The progress is read before the commit. After the commit nothing may fail, because only this response contains
    // the secret.
    return withProgress(tx, row);
  });
  return { ...saved, secret: standardSecret(secret) };
}

/**
 * Writes an audit row that says that the audit webhook is tested, and makes the next POST due. The forwarder sends the
 * row like every other. Throws `not_found` if there is no audit webhook.
 */
export async function testAuditWebhook(
  { db, clock }: Pick<WebhookDeps, "db" | "clock">,
  { principal: actor, requestContext }: Caller,
): Promise<void> {
  const at = clock.now();
  await db.transaction(async (tx) => {
    const tested = await queries.hurryAuditWebhook(tx, at);
    if (tested === undefined) throw new Problem("not_found");
    const details = hostOf(tested.url);
    await recordAudit(tx, { at, action: "AUDIT_WEBHOOK_TESTED", actor, requestContext, details });
  });
}

/** Deletes the audit webhook. Throws `not_found` if there is none. */
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

/** Returns only the host for the audit log, because user, path and query may contain a secret. */
const hostOf = (url: string) => ({ host: URL.parse(url)?.host ?? null });

/** Maximum number of rows in one POST. */
const POSTED_ROWS = 500;
const FIRST_PAUSE_MS = 5_000;
/** Longest pause in ms after a failed POST. */
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
 * Posts the audit log to the audit webhook, in the order of ids (contract 3.12). The position moves only after a 2xx,
 * by a statement that changes nothing if the settings or the position have changed since they were read. So rows may be
 * sent twice, but are never skipped, even if a process dies before this statement or two processes run at once.
 */
export class AuditForwarder {
  readonly #deps: ForwardDeps;

  constructor(deps: ForwardDeps) {
    this.#deps = deps;
  }

  /**
   * Posts the next rows. `next` is set if the POST was full and accepted, which means that more rows may be waiting.
   */
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
      if (!(await queries.savePostResult(db, webhook, moved))) return { rows: 0 };
      return rows === POSTED_ROWS ? { rows, next: "" } : { rows };
    }
    const { failures } = webhook;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 20), LONGEST_PAUSE_MS);
    const error = postErrorOf(posted).slice(0, ERROR_CHARS);
    const failed = { failures: failures + 1, lastError: error, failedAt: now };
    await queries.savePostResult(db, webhook, { ...failed, nextAt: addMs(now, pauseMs) });
    log.warn("audit_webhook.failed", { error, failures: failures + 1 });
    return { rows: 0 };
  }

  #requestOf(webhook: queries.AuditWebhook, body: string, last: string) {
    const { url, version, afterId, sealedSecret } = webhook;
    // The receiver recognises a repeated POST of the same rows by its id.
    const id = `audit-${version}-${afterId}-${last}`;
    const timestamp = standardTimestamp(this.#deps.clock.now());
    const secret = this.#deps.box.open(sealedSecret, SECRET_CONTEXT);
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

/** Body that sets the audit webhook. Each request creates a new secret (contract 3.12). */
export const AuditWebhookBody = Type.Object(
  {
    url: Object.assign(receiving(storableText([1, MAX_URL_CHARS])), {
      description: "URL that receives the rows.",
    }),
    start: Type.Optional(
      literals(["oldest", "newest"], {
        description:
          "First row to send. If absent, an existing webhook continues, and a new one starts with the next row.",
      }),
    ),
  },
  {
    title: "AuditWebhookInput",
    examples: [{ url: "https://siem.example/audit", start: "oldest" }],
    additionalProperties: false,
  },
);
export type AuditWebhookBody = Static<typeof AuditWebhookBody>;

export const AuditWebhookObject = Type.Object(
  {
    url: Type.String({ description: "URL that receives the rows." }),
    cursor: orNull(Type.String(), {
      description: "The `cursor` of the last row that was accepted; null before the oldest one.",
    }),
    oldest_waiting_at: orNull(instantAnswer(), {
      description: "Time of the first row that is not sent yet.",
    }),
    delivered_at: orNull(instantAnswer(), { description: "Time of the last accepted POST." }),
    failures: Type.Integer({ description: "Failed POSTs since the last accepted one." }),
    last_error: orNull(
      Type.Object(
        { at: instantAnswer(), error: Type.String({ examples: ["http_503"] }) },
        { title: "AuditWebhookError" },
      ),
      { description: "The last failed POST; null if the last one was accepted." },
    ),
    next_attempt_at: orNull(instantAnswer(), {
      description: "Time of the next POST after a failure; null without one.",
    }),
    lost_rows: Type.Integer({
      description: "Rows that were removed by `AUDIT_RETENTION_DAYS` before they were accepted.",
    }),
    created_at: instantAnswer(),
    updated_at: instantAnswer(),
  },
  {
    title: "AuditWebhook",
    examples: [{ url: "https://siem.example/audit", cursor: "OTAyMTA", failures: 0, lost_rows: 0 }],
  },
);
type AuditWebhookShown = RowOf<typeof AuditWebhookObject>;

/** The audit webhook with its secret, which only the response that sets it contains. */
export const AuditWebhookWithSecret = Type.Object(
  {
    ...AuditWebhookObject.properties,
    secret: secretText({
      pattern: "^whsec_",
      description: "The secret for libraries of Standard Webhooks. It is shown only here.",
    }),
  },
  {
    title: "AuditWebhookWithSecret",
    examples: [{ secret: "whsec_OWQ0MWE3YmU1MmMwZjg2M2UxZDcwOTRiNmEyYzU4ZjM" }],
    extends: AuditWebhookObject,
  },
);
