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

export interface WriterDeps {
  readonly client: Client;
  readonly tenants: Tenants;
  readonly random: Prng;
  readonly written: Written;
  readonly name: string;
  /** The most events in one request. */
  readonly maxEvents: number;
}

/** How often a client repeats a request without an answer. */
const TRIES = 3;
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
  const { random, written, name, maxEvents } = deps;
  const known: Review[] = [];
  for (let nth = 0; !until(); nth++) {
    const reports = Array.from({ length: random.int(1, maxEvents) }, (_, i) =>
      reportOf(deps, known, `${name}-${nth}-${i}`),
    );
    written.sent += reports.length;
    if (await report(deps, reports)) {
      noteAccepted(written, reports);
      known.push(...reports.flatMap(({ isNew, review }) => (isNew ? [review] : [])));
      known.splice(0, known.length - KEPT);
    }
    await Bun.sleep(random.between(50, 350));
  }
}

/** Reports a new review of each partner, until that is certainly accepted. */
export async function writeLast(deps: WriterDeps): Promise<void> {
  const { tenants, written, name } = deps;
  const reports = tenants.partners.map(({ sites: [siteId = 0] }) => {
    const marker = `${name}-${siteId}`;
    const told = { review: { siteId, externalId: marker }, isNew: true, marker };
    return reviewReport(told, { rate: 5, content: "Clean work." });
  });
  while (!(await report(deps, reports))) await Bun.sleep(300);
  written.sent += reports.length;
  noteAccepted(written, reports);
}

function noteAccepted(written: Written, reports: readonly Report[]): void {
  for (const { marker, review, event } of reports) {
    const key = reviewKey(review.siteId, review.externalId);
    written.accepted.push({ eventId: event.id, review: key, marker });
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
  if (!isNew && random.chance(0.15)) {
    const connected = random.chance(0.5);
    const axis = random.pick(["pull", "post"]);
    const error_code = connected ? null : "E-002";
    const event = { ...fieldsOf(review), type: "connection.changed", axis, connected, error_code };
    return { review, isNew, marker: undefined, event };
  }
  const [rate, isProfane] = [random.int(1, 5), random.chance(0.1)];
  const content = isProfane ? "This was shit." : `Friendly people, clean work: ${marker}.`;
  return reviewReport({ review, isNew, marker }, { rate, content });
}

/** Reports a review with this marker as its reviewer. */
function reviewReport(
  told: Pick<Report, "review" | "isNew"> & { readonly marker: string },
  { rate, content }: { readonly rate: number; readonly content: string },
): Report {
  const { review, isNew, marker: reviewer } = told;
  const common = fieldsOf(review);
  const reported = {
    external_review_id: review.externalId,
    rate,
    reviewer,
    content,
    reviewed_at: common.occurred_at,
  };
  const type = isNew ? "review.created" : "review.updated";
  return { ...told, event: { ...common, type, review: reported } };
}

function fieldsOf({ siteId }: Review) {
  return { id: ulid(), occurred_at: new Date().toISOString(), store_review_site_id: siteId };
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
