import { createHmac } from "node:crypto";

import { ulid } from "ulid";

import type { Prng } from "../../simulation/prng.ts";
import type { Client } from "./client.ts";
import { PROVIDER, type Tenants } from "./tenants.ts";
import { type Accepted, reviewKey } from "../../verdicts/facts.ts";

export interface Written {
  /** The events that were certainly accepted. */
  readonly accepted: Accepted[];
  /** How many events were sent, accepted or not. */
  sent: number;
}

interface WriterDeps {
  readonly client: Client;
  readonly tenants: Tenants;
  readonly random: Prng;
  readonly written: Written;
  readonly name: string;
}

/** How often a client repeats a request without an answer. */
const TRIES = 3;
const MAX_EVENTS = 4;
/** How many reviews one writer keeps reporting changes of. */
const KEPT = 12;

interface Review {
  readonly siteId: number;
  readonly externalId: string;
}

/**
 * Reports reviews as a provider does, and changes some of them repeatedly. A request without an answer is repeated
 * with the same ids or abandoned; an abandoned one may or may not be stored.
 */
export async function write(deps: WriterDeps, until: () => boolean): Promise<void> {
  const { random, written, name } = deps;
  const known: Review[] = [];
  for (let nth = 0; !until(); nth++) {
    const reports = Array.from({ length: random.int(1, MAX_EVENTS) }, (_, i) =>
      reportOf(deps, known, `${name}-${nth}-${i}`),
    );
    written.sent += reports.length;
    if (await report(deps, reports)) {
      for (const { marker, review, isNew, event } of reports) {
        const key = reviewKey(review.siteId, review.externalId);
        written.accepted.push({ eventId: event.id, review: key, marker });
        if (isNew) known.push(review);
      }
      known.splice(0, known.length - KEPT);
    }
    await Bun.sleep(random.between(50, 350));
  }
}

interface Report {
  readonly review: Review;
  readonly isNew: boolean;
  /** Undefined if the event is not shown in the history. */
  readonly marker: string | undefined;
  readonly event: Readonly<Record<string, unknown>> & { readonly id: string };
}

function reportOf(
  { tenants, random }: WriterDeps,
  known: readonly Review[],
  marker: string,
): Report {
  const partner = random.pick(tenants.partners);
  const isNew = known.length === 0 || random.chance(0.4);
  const review = isNew
    ? { siteId: random.pick(partner.sites), externalId: marker }
    : random.pick(known);
  const at = new Date().toISOString();
  const common = { id: ulid(), occurred_at: at, store_review_site_id: review.siteId };
  if (!isNew && random.chance(0.15)) {
    const connected = random.chance(0.5);
    const axis = random.pick(["pull", "post"]);
    const error_code = connected ? null : "E-002";
    const event = { ...common, type: "connection.changed", axis, connected, error_code };
    return { review, isNew, marker: undefined, event };
  }
  const reported = {
    external_review_id: review.externalId,
    rate: random.int(1, 5),
    reviewer: marker,
    content: random.chance(0.1) ? "This was shit." : `Friendly people, clean work: ${marker}.`,
    reviewed_at: at,
  };
  const type = isNew ? "review.created" : "review.updated";
  return { review, isNew, marker, event: { ...common, type, review: reported } };
}

/** Returns true if the events were certainly accepted. */
async function report({ client, tenants, random }: WriterDeps, reports: readonly Report[]) {
  const body = JSON.stringify({ events: reports.map(({ event }) => event) });
  const digest = createHmac("sha256", tenants.providerSecret).update(body).digest("hex");
  const headers = { "X-Provider-Signature": `sha256=${digest}` };
  for (let tried = 1; tried <= TRIES; tried++) {
    const path = `/providers/${PROVIDER}/events`;
    const { status } = await client.call("POST", path, {
      body,
      headers,
      wants: [200],
      // A repeated request may contain duplicates of its first try.
      fits: ({ accepted, duplicates }) =>
        Number(accepted) + Number(duplicates) === reports.length && (tried > 1 || duplicates === 0),
    });
    if (status !== undefined) return status === 200;
    if (random.chance(0.4)) return false;
    await Bun.sleep(300);
  }
  return false;
}
