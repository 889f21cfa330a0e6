import { ulid } from "ulid";

import { waitForLock } from "../../../db/server.ts";
import { recordAudit } from "../../audit/queries.ts";
import { nextMailAt, retryAfterS } from "../../auth/decide.ts";
import { isUlid } from "../../http/ids.ts";
import type { Caller } from "../../http/principal.ts";
import { Problem } from "../../lib/problem.ts";
import { explainFinding, type Finding, hasPassed } from "../../outbox/check-findings.ts";
import type { CheckReport } from "../check-model.ts";
import type { Subscription } from "../model.ts";
import * as queries from "../queries/checks.ts";
import { lockSubscription } from "../queries/subscriptions.ts";
import { orNotFound, type WebhookDeps } from "./deps.ts";

/** The checks that a partner may begin (contract 6.23). */
const CHECKS_OF_PARTNER = { most: 10, periodMs: 3_600_000 };
/** The newest reports of a partner that are kept. There are more of them than checks in an hour. */
const KEPT_REPORTS = 20;

/**
 * Requests a check of the endpoint of a subscription, and returns its id (contract 6.23). While another check of the
 * subscription is pending or running, returns the id of that one. A dispatcher makes the check.
 */
export async function requestCheck(
  { db, clock }: Pick<WebhookDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  { id: subscriptionId, partnerId }: Subscription,
): Promise<string> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    await waitForLock(tx, "checksOfPartner", String(partnerId));
    const { state } = orNotFound(await lockSubscription(tx, partnerId, subscriptionId));
    if (state !== "active") throw new Problem("subscription_disabled");
    const open = await queries.openCheckOf(tx, subscriptionId);
    if (open !== undefined) return open;
    const newest = await queries.newestChecks(tx, partnerId, KEPT_REPORTS - 1);
    rejectIfTooMany(
      newest.map(({ createdAt }) => createdAt),
      now,
    );
    const kept = newest.map((one) => one.id);
    await queries.deleteOtherChecks(tx, partnerId, kept);
    const id = ulid(now.getTime());
    await queries.insertCheck(tx, { id, subscriptionId, partnerId, createdAt: now });
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_CHECKED",
      actor: principal,
      requestContext,
      details: { subscription_id: subscriptionId, check_id: id },
    });
    return id;
  });
}

function rejectIfTooMany(begunAt: readonly Date[], now: Date): void {
  const until = nextMailAt(begunAt, [CHECKS_OF_PARTNER], now);
  if (until === undefined) return;
  const { most } = CHECKS_OF_PARTNER;
  throw new Problem("rate_limited", {
    headers: { "Retry-After": String(retryAfterS(until, now)) },
    message: `Only ${most} checks may begin in an hour; try again later.`,
  });
}

/** Reads the report of a check of the subscription. Throws `not_found` if there is none with this id. */
export async function showCheck(
  { db }: Pick<WebhookDeps, "db">,
  { id: subscriptionId }: Pick<Subscription, "id">,
  id: string,
): Promise<CheckReport> {
  const row = orNotFound(isUlid(id) ? await queries.checkOf(db, subscriptionId, id) : undefined);
  // Only the dispatcher writes findings, so each has this shape.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const findings = (row.findings ?? []) as readonly Finding[];
  return {
    ...row,
    passed: row.state === "done" ? hasPassed(findings) : null,
    findings: findings.map(explainFinding),
  };
}
