import { ALERT_KINDS, type AlertKind } from "../../outbox/alert.ts";
import { causesOf, incidentStepMs } from "../incident.ts";
import type { Incident } from "../incident-model.ts";
import { DISABLED_BY_HAND, type Subscription } from "../model.ts";
import { attemptsById, attemptsOfEvent } from "../queries/attempts.ts";
import { failingSince, openAlerts, troubleSince } from "../queries/incident.ts";
import { BUCKET_MS } from "../stats.ts";
import type { WebhookDeps } from "./deps.ts";
import { showHealth } from "./stats.ts";

/** A round has so many attempts. */
const ROUND = 4;

/** Of those that were raised together the gravest is the last. */
const place = ({ kind }: { readonly kind: AlertKind }) => ALERT_KINDS.indexOf(kind);

/** See contract 6.17. */
export async function showIncident(
  deps: Pick<WebhookDeps, "db" | "clock">,
  subscription: Subscription,
): Promise<Incident> {
  const { db, clock } = deps;
  const { id } = subscription;
  const alerts = (await openAlerts(db, id)).toSorted(
    (a, b) => a.raisedAt.getTime() - b.raisedAt.getTime() || place(a) - place(b),
  );
  const { firstFailure, blockedSince } = await showHealth(deps, subscription);
  // The event that was given up first may have failed before another one was delivered.
  const first = firstFailure
    ? (await attemptsOfEvent(db, id, firstFailure.eventId, ROUND)).find(
        ({ outcome }) => outcome !== "delivered",
      )
    : undefined;
  const isByHand = subscription.disabledReason === DISABLED_BY_HAND;
  const failing = firstFailure || isByHand ? await failingSince(db, id) : undefined;
  // Disabling by hand is no trouble in itself.
  const disabledAt = isByHand ? null : subscription.disabledAt;
  const begun = [failing, first?.startedAt, blockedSince, disabledAt];
  const [since] = begun.filter((at) => at != null).toSorted((a, b) => a.getTime() - b.getTime());
  if (since === undefined)
    return { since: null, lastAnswer: null, stepMs: BUCKET_MS, causes: [], alerts };
  const now = clock.now();
  const attempts = await troubleSince(db, id, since);
  const [last] = await attemptsById(
    db,
    id,
    attempts.slice(0, 1).map((one) => one.id),
  );
  const stepMs = incidentStepMs(since, now);
  return {
    since,
    lastAnswer: last ?? null,
    stepMs,
    causes: causesOf(attempts, { since, stepMs, now }),
    alerts,
  };
}
