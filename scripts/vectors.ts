// `bun scripts/vectors.ts` writes tests/vectors: the delivery of every event in both modes, and deliveries that a
// receiver must reject. The real envelope and signature code creates them from fixed input, so a second run changes
// nothing. sequence.json is written by hand: calls of `advance` and `placeOf` in the packages, with their results.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { composeRequest } from "../dispatcher/delivery/compose.ts";
import { addMs, fromMs } from "../src/lib/clock.ts";
import {
  CATALOG,
  CONNECTION_EVENTS,
  type EventFacts,
  type EventValue,
  type PayloadMode,
  type ReviewEventValue,
  siteStateOf,
} from "../src/outbox/event.ts";
import { testFactsOf } from "../src/outbox/test-event.ts";
import { reasonOf } from "../src/intake/provider-model.ts";
import type { Metadata } from "../src/reviews/events.ts";

/** A delivery, and whether a receiver may accept it. */
export interface Vector {
  readonly name: string;
  readonly valid: boolean;
  /** The reason why a receiver must reject it. */
  readonly reason?: string;
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The exact text. Its UTF-8 bytes are signed. */
  readonly body: string;
}

const FOLDER = join(import.meta.dir, "../tests/vectors");
export const EXAMPLES = join(import.meta.dir, "../src/docs/event-examples.json");
const SECRET = "4f0c8a1de2b37965a4c8d0e1f2037b6c59e8a1d4b7c20f3e6d5a49182b7c0e3f";
const OTHER_SECRET = "b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184";
const START_MS = Date.parse("2026-06-01T12:00:00.000Z");
const ULIDS = "01JWNB9PR0ZV8X2D3F4G5H6J";

const PEOPLE = {
  user: '{"type":"user","id":31,"name":"Zoë O’Neil"}',
  site: '{"type":"system","id":null,"name":"google"}',
};
const REVIEW =
  '{"id":42,"external_review_id":"g-7781","store_id":3,"review_site_id":2,"source_platform":"google","rate":2,"reviewer":"Ada Ünal"}';
const CONTENT = {
  content: "Late twice. Friendly 🙂 though.",
  reviewed_at: "2026-06-01T11:58:00.000+00:00",
};

/** The actor and the metadata of each review event. */
const SAMPLES: Readonly<Record<string, readonly [keyof typeof PEOPLE, object]>> = {
  review_received: ["site", CONTENT],
  review_updated: ["site", { changed: ["rate", "content"], ...CONTENT, restored: false }],
  review_removed: ["site", {}],
  profanity_detected: ["site", { words: ["damn"] }],
  review_flagged: ["user", { reason: "Written about another store" }],
  flag_status_changed: ["user", { from: "open", to: "under_review", native_email: "queued" }],
  review_assigned: ["user", { user_id: 31 }],
  note_added: ["user", { body: "Called the customer back." }],
  response_submitted: ["user", { body: "We are sorry, and have changed our schedule." }],
  response_updated: ["user", { body: "We are sorry. The next visit is on us." }],
  response_deleted: ["user", {}],
  homeowner_notified_of_response: ["site", { native_email: "queued" }],
} satisfies { [E in ReviewEventValue]: readonly [keyof typeof PEOPLE, Metadata[E]] };

function factsOf(event: EventValue, i: number): EventFacts {
  const common = {
    eventId: `${ULIDS}${String(i).padStart(2, "0")}`,
    event,
    occurredAt: addMs(fromMs(START_MS), i * 1_000),
    partnerId: 7,
    reviewHistoryId: 9_001 + i,
    storeId: 3,
    storeReviewSiteId: 11,
  };
  const site = siteStateOf(event);
  if (site === undefined) {
    const [actor, metadata] = SAMPLES[event] ?? ["user", {}];
    return {
      ...common,
      reviewId: 42,
      axis: null,
      actorJson: PEOPLE[actor],
      reviewJson: REVIEW,
      siteJson: null,
      metadataJson: JSON.stringify(metadata),
    };
  }
  return {
    ...common,
    reviewId: CONNECTION_EVENTS.includes(event) ? null : 42,
    axis: site.axis,
    actorJson: PEOPLE.site,
    reviewJson: null,
    siteJson: siteOf(event, site),
    metadataJson: "{}",
  };
}

type SiteState = NonNullable<ReturnType<typeof siteStateOf>>;

function siteOf(event: EventValue, { axis, isConnected, isError }: SiteState): string {
  const code = event === "response_post_failed" ? "E-012" : "E-002";
  const error_code = isError ? code : null;
  return JSON.stringify({
    store: { id: 3 },
    review_site: {
      store_review_site_id: 11,
      review_site_id: 2,
      name: "Google",
      connection_status: isConnected ? "connected" : "disconnected",
      disconnect_reason: isConnected ? null : code,
    },
    axis,
    error_code,
    reason: reasonOf(error_code),
  });
}

function delivery(
  event: EventValue,
  mode: PayloadMode,
  previousSecret: string | null = null,
): Pick<Vector, "headers" | "body"> {
  const i = CATALOG.findIndex((one) => one.value === event);
  const facts = factsOf(event, i);
  const { eventId, occurredAt: recordedAt } = facts;
  const isTest = event === "webhook.test";
  const { headers, body } = composeRequest(
    {
      sequence: i + 1,
      isLogged: !isTest,
      eventId,
      event,
      isTest,
      payloadMode: mode,
      reviewId: facts.reviewId,
      batchJobId: null,
      recordedAt,
      round: 1,
      attempt: 1,
      dueAt: null,
      isFirstOnly: false,
      bytes: 0,
      number: null,
      settledBefore: 0,
    },
    isTest ? testFactsOf({ event, eventId, recordedAt }, 7) : facts,
    {
      partnerId: 7,
      webhookUrl: "https://partner.example/hook",
      ordering: "subscription",
      secret: SECRET,
      previousSecret,
      standardWebhooks: false,
      settledLimit: null,
      headers: null,
      nextBatchAt: null,
      pendingTestEventId: null,
      consecutiveFailureCount: 0,
      erasures: 0,
      inactiveAccounts: "{}",
    },
    addMs(facts.occurredAt, 1_250),
  );
  return { headers, body };
}

function goodVectors(mode: PayloadMode): Vector[] {
  return CATALOG.map(({ value }) => ({
    name: `${value}-${mode}`,
    valid: true,
    secret: SECRET,
    ...delivery(value, mode),
  }));
}

/** Returns deliveries each of which differs from a valid one in one way. */
function badVectors(): Vector[] {
  const good = { valid: false, secret: SECRET, ...delivery("review_received", "full") };
  const signature = good.headers["X-SVC-Signature"] ?? "";
  const signed = (value: string) => ({ ...good.headers, "X-SVC-Signature": value });
  const { "X-SVC-Signature": _, ...unsigned } = good.headers;
  const digit = signature.endsWith("0") ? "1" : "0";
  return [
    {
      ...good,
      name: "changed-byte",
      reason: "one byte of the body differs",
      body: good.body.replace("Late", "late"),
    },
    {
      ...good,
      name: "added-newline",
      reason: "the body has a line break more",
      body: `${good.body}\n`,
    },
    {
      ...good,
      name: "parsed-and-written-again",
      reason: "the body was parsed and written again with spaces",
      body: JSON.stringify(JSON.parse(good.body), null, 1),
    },
    { ...good, name: "empty-body", reason: "the body is missing", body: "" },
    { ...good, name: "wrong-secret", reason: "the secret is another one", secret: OTHER_SECRET },
    { ...good, name: "missing-header", reason: "the signature is missing", headers: unsigned },
    { ...good, name: "empty-header", reason: "the signature is empty", headers: signed("") },
    {
      ...good,
      name: "without-prefix",
      reason: "the signature has no sha256=",
      headers: signed(signature.slice(7)),
    },
    {
      ...good,
      name: "cut-signature",
      reason: "the signature is cut",
      headers: signed(signature.slice(0, -1)),
    },
    {
      ...good,
      name: "changed-digit",
      reason: "one digit of the signature differs",
      headers: signed(signature.slice(0, -1) + digit),
    },
  ];
}

/**
 * Returns deliveries during the grace period of a rotation: a receiver with the previous secret verifies the other
 * header.
 */
function graceVectors(): Vector[] {
  const { headers, body } = delivery("review_received", "full", OTHER_SECRET);
  const previous = headers["X-SVC-Signature-Previous"] ?? "";
  return [
    { name: "grace-new-secret", valid: true, secret: SECRET, headers, body },
    {
      name: "grace-former-secret",
      valid: true,
      secret: OTHER_SECRET,
      headers: { ...headers, "X-SVC-Signature": previous },
      body,
    },
  ];
}

/**
 * Returns the content of files by their paths below tests/vectors. Two folders contain the events by payload mode, and
 * the third one signatures.
 */
export function vectorFiles(): Map<string, string> {
  const folders: Readonly<Record<string, readonly Vector[]>> = {
    full: goodVectors("full"),
    minimal: goodVectors("minimal"),
    signatures: [...badVectors(), ...graceVectors()],
  };
  return new Map(
    Object.entries(folders).flatMap(([folder, vectors]) =>
      vectors.map((one) => [`${folder}/${one.name}.json`, `${JSON.stringify(one, null, 2)}\n`]),
    ),
  );
}

/** Returns the bodies that the guide about events shows. */
export function eventExamples(): string {
  const bodies = CATALOG.map(({ value }) => [
    value,
    { full: delivery(value, "full").body, minimal: delivery(value, "minimal").body },
  ]);
  return `${JSON.stringify(Object.fromEntries(bodies), null, 2)}\n`;
}

function main(): void {
  const files = vectorFiles();
  const present = readdirSync(FOLDER, { recursive: true, encoding: "utf8" });
  for (const path of present)
    if (/\/.*\.json$/.test(path) && !files.has(path)) rmSync(join(FOLDER, path));
  for (const [path, text] of files) {
    mkdirSync(dirname(join(FOLDER, path)), { recursive: true });
    writeFileSync(join(FOLDER, path), text);
  }
  writeFileSync(EXAMPLES, eventExamples());
  console.log(`${files.size} vectors in tests/vectors, and the examples of the events guide.`);
}

if (import.meta.main) main();
