// A state that several paths set: what one of them records, the others record as well, and what it leaves out they leave
// out (contract 9.2, 9.7). The events are those of the catalog, and the paths those that record events.
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createApp } from "../../../src/app.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import type { CountInbox } from "../../../src/http/metrics.ts";
import { type RecordedAction, SUBSCRIBABLE_EVENTS } from "../../../src/outbox/event.ts";
import { EVENT_SCHEMAS } from "../../../src/intake/provider-model.ts";
import { processInbox } from "../../../src/intake/inbox.ts";
import { importFile } from "../../../src/transfer/import.ts";
import { ROOT } from "../../../scripts/install/install.ts";
import { silentLog } from "../../support/dispatch.ts";
import {
  addProvider,
  connectStore,
  created,
  providerEvent,
  queuedFor,
  report,
  reportedReview,
  reviewIdOf,
  type TestProvider,
} from "../../support/factory.ts";
import { fixture, lazy } from "../../support/fixture.ts";
import { addService, startWebhooks } from "../../support/webhooks.ts";

describe("the table has", () => {
  test("every event", () => {
    expect(Object.keys(CASES).toSorted()).toEqual([...SUBSCRIBABLE_EVENTS].toSorted());
  });

  test("every file that records events", () => {
    expect(sourcesWith(/\brecordActions\(tx/)).toEqual(Object.keys(PATHS));
  });

  test("every file that writes reviews or connections; the last two write no state of these events", () => {
    const written =
      /(update|insert)\((reviews|storeReviewSites)\)|(update|into) (reviews|store_review_sites)\b/;
    expect(sourcesWith(written)).toEqual([
      "src/intake/queries/new-reviews.ts",
      "src/intake/queries/write.ts",
      "src/tenants/queries/erase.ts",
      "src/tenants/queries/stores.ts",
    ]);
  });

  test("every route of an account on a review", () => {
    const base = `${BASE_PATH}/account/reviews/:id/`;
    const routes = createApp(world.api.deps).routes.flatMap(({ method, path }) =>
      !["GET", "ALL"].includes(method) && path.startsWith(base)
        ? [`${method} ${path.slice(base.length)}`]
        : [],
    );
    const used = Object.values(ROUTES).flatMap((one) => (one === null ? [] : [one[0]]));
    expect([...new Set(used)].toSorted()).toEqual(routes.toSorted());
  });

  test("every type that providers report", () => {
    const subject = { provider: world.provider, siteId: 1, externalId: "x", reviewId: 1 };
    const types = SUBSCRIBABLE_EVENTS.flatMap((event) => {
      const one = REPORTS[event]?.(subject, { event });
      return one === undefined ? [] : [String(Reflect.get(one, "type"))];
    });
    expect([...new Set(types)].toSorted()).toEqual(Object.keys(EVENT_SCHEMAS).toSorted());
  });
});

describe.each(SUBSCRIBABLE_EVENTS)("%s", (event) => {
  test("is recorded by every path and again by every path, or by none", async () => {
    for (const { before = {}, first, second = first, result, imported } of CASES[event]) {
      const states: object[] = [];
      const makers: [string, () => Promise<Subject | undefined>][] = ALL.map(([name, path]) => [
        name,
        async () => {
          const subject = await makeSubject(before);
          const from = await factsOf(subject);
          if (!(await path(subject, { event, ...first }))) return undefined;
          const to = await factsOf(subject);
          expect([name, to.events[from.events.length]]).toEqual([name, event]);
          return subject;
        },
      ]);
      if (imported !== undefined) makers.push(["import", () => importSubject(imported())]);
      for (const [maker, make] of makers)
        for (const [name, path] of ALL) {
          const subject = await make();
          if (subject === undefined) continue;
          const from = await factsOf(subject);
          if (!(await path(subject, { event, ...second }))) continue;
          const to = await factsOf(subject);
          const more = to.events.slice(from.events.length);
          const label = `${maker}, then ${name}`;
          states.push({ label, ...to.state });
          expect([label, more.length > 0]).toEqual([label, result === "recorded"]);
          expect([label, to.queued - from.queued]).toEqual([label, more.length]);
          if (result === "unchanged") expect([label, to.mails]).toEqual([label, from.mails]);
        }
      expect(new Set(states.map((one) => JSON.stringify({ ...one, label: "" }))).size).toBe(1);
    }
  });
});

describe("a repeated change", () => {
  describe.each(SUBSCRIBABLE_EVENTS.filter((event) => CASES[event].some(isRace)))("%s", (event) => {
    test("is recorded once if it changes something and several say it at the same time", async () => {
      for (const { before = {}, first } of CASES[event].filter(isRace)) {
        const [subject, beside] = [await makeSubject(before), await makeSubject({})];
        const from = await factsOf(subject);
        const said = { event, ...first };
        const note = { event: "note_added", ...BODY } as const;
        // A request of this size is not taken together with others.
        const large = [
          actionOf(subject, said),
          ...Array.from({ length: 40 }, () => actionOf(beside, note)),
        ];
        await insert(actionOf(subject, said));
        const answers = await Promise.all([
          send([actionOf(subject, said), actionOf(subject, said)]),
          send(large),
          send(large.map((one) => ({ ...one, id: `again-${one.id}` }))),
          send([actionOf(subject, said)]),
          takeOver(),
          provider(subject, said),
          accounts(subject, said),
        ]);
        const { events, queued } = await factsOf(subject);
        expect(events.slice(from.events.length)).toEqual([event]);
        expect(queued - from.queued).toBe(1 + 80);
        const counts = answers.flatMap((one) => (typeof one === "object" ? [one.body] : []));
        expect(counts.map((one) => one["accepted"])).toEqual([2, 41, 41, 1]);
      }
    });
  });
});

test("actions of one request are decided in their order, each after the one before", async () => {
  const subject = await makeSubject({});
  const said: Said[] = [
    { event: "review_pull_disconnected", ...E_1 },
    { event: "review_pull_disconnected", ...E_2 },
    { event: "review_pull_connected" },
    { event: "review_pull_connected" },
    { event: "review_pull_disconnected", ...E_1 },
    { event: "response_deleted" },
    { event: "response_submitted", ...BODY },
    { event: "response_updated", ...BODY },
    { event: "response_deleted" },
    { event: "review_removed" },
    { event: "review_removed" },
    { event: "review_updated", metadata: { ...TEXT, changed: [], restored: true } },
    { event: "review_removed" },
  ];
  const some = said.map((one) => actionOf(subject, one));
  const from = await factsOf(subject);
  expect((await send(some)).body).toEqual({ accepted: 13, unchanged: 4, duplicates: 0 });
  const { events, state } = await factsOf(subject);
  expect(events.slice(from.events.length)).toEqual([
    "review_pull_disconnected",
    "review_pull_connected",
    "review_pull_disconnected",
    "response_submitted",
    "response_updated",
    "response_deleted",
    "review_removed",
    "review_updated",
    "review_removed",
  ]);
  expect(state).toMatchObject({ removed: true, pull_connected: false, pull_error_code: "E-001" });
  // The ids of the unchanged ones are claimed as well.
  expect((await send(some)).body).toEqual({ accepted: 0, unchanged: 0, duplicates: 13 });
});

test("an action that changes nothing leaves the inbox, its id is claimed, and it is counted", async () => {
  const subject = await makeSubject({});
  const one = actionOf(subject, { event: "response_deleted" });
  const before = { ...counted };
  await insert(one);
  await insert(one);
  await insert(actionOf(subject, { event: "note_added", ...BODY }));
  await takeOver();
  for (const result of ["recorded", "unchanged", "duplicate"])
    expect([result, (counted[result] ?? 0) - (before[result] ?? 0)]).toEqual([result, 1]);
  expect(await world.database.db.sql`select from inbox`).toHaveLength(0);
  expect((await send([one])).body).toEqual({ accepted: 0, unchanged: 0, duplicates: 1 });
});

// ------------------------------------------------------------------------------------------------ the cases

type Event = RecordedAction["event"];

/** The fields of an action besides its id, its actor, its time and its subject. */
interface Said {
  readonly event: Event;
  readonly error_code?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

interface Case {
  /** Columns of the review or the connection before the first event. */
  readonly before?: Readonly<Record<string, unknown>>;
  readonly first: Omit<Said, "event">;
  /** What the second event says; by default the same as the first. */
  readonly second?: Omit<Said, "event">;
  readonly result: "recorded" | "unchanged";
  /** The lines of an import that make a subject in the state after the first event, which record nothing. */
  readonly imported?: () => Imported;
}

/** Whether the second of two, in any order, changes nothing. */
const isRace = ({ result, second }: Case) => result === "unchanged" && second === undefined;

interface Imported {
  readonly connection?: object;
  readonly review?: object;
  readonly flag?: object;
  readonly response?: object;
}

const AT = "2026-05-01T08:00:00.000+00:00";
const TEXT = { content: "Friendly.", reviewed_at: "2026-06-01T11:00:00.000+00:00" };
const BODY = { metadata: { body: "Thank you" } };
const SPAM = { metadata: { reason: "Spam" } };
const RESPONDED = { response_body: "Hello", responded_at: AT };
const MOVED = { from: "open", to: "under_review", native_email: "suppressed" };
const [E_1, E_2] = [{ error_code: "E-001" }, { error_code: "E-002" }];
const ASSIGNED = { metadata: lazy(() => ({ user_id: account().user.id })) };

/** The cases of an axis: the same state again, and, where it is disconnected, another error code. */
const disconnected = (axis: "pull" | "post"): readonly Case[] => {
  const imported = () => ({ connection: { [axis]: { connected: false, ...E_1 } } });
  const result = "unchanged";
  return [
    { first: E_1, result, imported },
    { first: E_1, second: E_2, result, imported },
  ];
};
const connected = (axis: "pull" | "post"): readonly Case[] => [
  {
    before: { [`${axis}_connected`]: false, [`${axis}_error_code`]: "E-001" },
    first: {},
    result: "unchanged",
    imported: () => ({}),
  },
];

/** The rule of every event of the catalog: a new event needs its cases here before it compiles. */
const CASES: Readonly<Record<Event, readonly Case[]>> = {
  review_received: [{ first: { metadata: TEXT }, result: "recorded" }],
  review_updated: [
    { first: { metadata: { ...TEXT, changed: ["rate"], restored: false } }, result: "recorded" },
  ],
  review_removed: [
    { first: {}, result: "unchanged", imported: () => ({ review: { removed_at: AT } }) },
  ],
  profanity_detected: [{ first: { metadata: { words: ["damn"] } }, result: "recorded" }],
  review_flagged: [
    {
      first: SPAM,
      result: "unchanged",
      imported: () => ({ flag: { reason: "Spam", status: "open" } }),
    },
    { first: SPAM, second: { metadata: { reason: "Rude" } }, result: "unchanged" },
    { before: { flag_status: "rejected", flag_reason: "Old" }, first: SPAM, result: "unchanged" },
  ],
  flag_status_changed: [
    {
      before: { flag_status: "open", flag_reason: "Spam" },
      first: { metadata: MOVED },
      result: "unchanged",
      imported: () => ({ flag: { status: "under_review", reason: "Spam" } }),
    },
    {
      before: { flag_status: "open", flag_reason: "Spam" },
      first: { metadata: { ...MOVED, to: "accepted" } },
      result: "unchanged",
    },
  ],
  review_assigned: [
    {
      first: ASSIGNED,
      result: "unchanged",
      imported: () => ({ review: { assigned_user_id: account().user.id } }),
    },
  ],
  note_added: [{ first: BODY, result: "recorded" }],
  response_submitted: [
    {
      first: BODY,
      result: "recorded",
      imported: () => ({ response: { body: "Thank you", responded_at: AT } }),
    },
  ],
  response_updated: [{ before: RESPONDED, first: BODY, result: "recorded" }],
  response_deleted: [
    {
      before: RESPONDED,
      first: {},
      result: "unchanged",
      imported: () => ({}),
    },
  ],
  homeowner_notified_of_response: [
    { first: { metadata: { native_email: "queued" } }, result: "recorded" },
  ],
  response_post_succeeded: [{ first: {}, result: "recorded" }],
  response_post_failed: [{ first: E_1, result: "recorded" }],
  review_pull_connected: connected("pull"),
  review_pull_disconnected: disconnected("pull"),
  response_post_connected: connected("post"),
  response_post_disconnected: disconnected("post"),
};

interface Subject {
  readonly provider: TestProvider;
  readonly siteId: number;
  readonly externalId: string;
  readonly reviewId: number;
}

/** A path that says an event about a subject. Returns false if the path has no way to say it. */
type Path = (subject: Subject, said: Said) => Promise<boolean>;

// ------------------------------------------------------------------------------------------------ the provider

const connection = (axis: string, isConnected: boolean) => (one: Subject, said: Said) =>
  providerEvent("connection.changed", one.siteId, {
    axis,
    connected: isConnected,
    error_code: said.error_code ?? null,
  });
const posting =
  (type: string) =>
  ({ siteId, externalId }: Subject, { error_code }: Said) =>
    providerEvent(type, siteId, {
      external_review_id: externalId,
      ...(error_code && { error_code }),
    });

/** What a provider reports, by the event that it leads to; null if it cannot report that. */
const REPORTS: Readonly<Record<Event, ((subject: Subject, said: Said) => object) | null>> = {
  review_received: ({ siteId }) => created(siteId, `another-${++count}`),
  review_updated: ({ siteId, externalId }) =>
    providerEvent("review.updated", siteId, {
      review: reportedReview(externalId, { content: `Version ${++count}` }),
    }),
  review_removed: ({ siteId, externalId }) =>
    providerEvent("review.removed", siteId, { review: { external_review_id: externalId } }),
  // Found in the text of a report (tests/unit/intake/decide.test.ts).
  profanity_detected: null,
  review_flagged: null,
  flag_status_changed: null,
  review_assigned: null,
  note_added: null,
  response_submitted: null,
  response_updated: null,
  response_deleted: null,
  // Follows a posting that the provider reports.
  homeowner_notified_of_response: null,
  response_post_succeeded: posting("response.posted"),
  response_post_failed: posting("response.failed"),
  review_pull_connected: connection("pull", true),
  review_pull_disconnected: connection("pull", false),
  response_post_connected: connection("post", true),
  response_post_disconnected: connection("post", false),
};

const provider: Path = async (subject, said) => {
  const event = REPORTS[said.event]?.(subject, said);
  if (event === undefined) return false;
  await report(world.api, subject.provider, [{ ...event }]);
  return true;
};

// ------------------------------------------------------------------------------------------------ accounts

type Request = readonly [
  route: string,
  body?: (metadata: Readonly<Record<string, unknown>>) => object,
];
const respond: Request = ["POST response", ({ body }) => ({ body })];

/** The route of an account by the event that it leads to; null if accounts cannot do that. */
const ROUTES: Readonly<Record<Event, Request | null>> = {
  review_received: null,
  review_updated: null,
  review_removed: null,
  profanity_detected: null,
  review_flagged: ["POST flag", ({ reason }) => ({ reason })],
  flag_status_changed: ["POST flag-status", ({ to }) => ({ status: to })],
  review_assigned: ["POST assign", ({ user_id }) => ({ user_id })],
  note_added: ["POST notes", ({ body }) => ({ body })],
  response_submitted: respond,
  response_updated: respond,
  response_deleted: ["DELETE response"],
  homeowner_notified_of_response: null,
  response_post_succeeded: null,
  response_post_failed: null,
  review_pull_connected: null,
  review_pull_disconnected: null,
  response_post_connected: null,
  response_post_disconnected: null,
};

const accounts: Path = async ({ reviewId }, { event, metadata = {} }) => {
  const request = ROUTES[event];
  if (request === null) return false;
  const [[method = "", path = ""], body] = [request[0].split(" "), request[1]?.(metadata)];
  const { status } = await world.api.call(method, `/account/reviews/${reviewId}/${path}`, {
    token: world.tokens.account,
    body,
  });
  // 409 is how an account is told that the flag is open, or that there is no response.
  expect([200, 409]).toContain(status);
  return true;
};

// ------------------------------------------------------------------------------------------------ services

function actionOf({ siteId, reviewId }: Subject, said: Said) {
  const isAxis = /_(dis)?connected$/.test(said.event);
  const subject = isAxis ? { store_review_site_id: siteId } : { review_id: reviewId };
  return { id: `every-${++count}`, actor: { type: "staff" }, occurred_at: AT, ...subject, ...said };
}

const send = (actions: readonly object[]) =>
  world.api.call("POST", "/platform/actions", { token: service.token, body: { actions } });

const actions: Path = async (subject, said) => {
  expect((await send([actionOf(subject, said)])).body).toMatchObject({ accepted: 1 });
  return true;
};

const insert = (action: object) => world.database.db.sql`
  insert into inbox (service_id, action) values (${service.id}, ${JSON.stringify(action)}::text::jsonb)`;

const counted: Record<string, number> = {};
async function takeOver(): Promise<void> {
  const { db, clock, box, config, schedule, writerPool } = world.api.deps;
  const countInbox: CountInbox = (results) => {
    for (const [result, more] of Object.entries(results))
      counted[result] = (counted[result] ?? 0) + more;
  };
  await processInbox({ db, clock, box, config, writerPool, schedule, log: silentLog, countInbox });
}

const inbox: Path = async (subject, said) => {
  await insert(actionOf(subject, said));
  await takeOver();
  expect(await world.database.db.sql`select from inbox`).toHaveLength(0);
  return true;
};

// ------------------------------------------------------------------------------------------------ the table

/** The paths by the file that records their events. An import only makes subjects in a state. */
const PATHS: Readonly<Record<string, Readonly<Record<string, Path>>>> = {
  "src/intake/write.ts": { provider, accounts, actions, inbox },
  "src/transfer/import-reviews.ts": {},
};
const ALL = Object.values(PATHS).flatMap((paths) => Object.entries(paths));

// ------------------------------------------------------------------------------------------------ the subjects

const world = fixture(startWebhooks);
let service = { id: 0, token: "" };
let subscription = "";
let count = 0;
let folder = "";

beforeAll(async () => {
  service = await addService(world);
  subscription = (await world.subscribe()).id;
  folder = mkdtempSync(join(tmpdir(), "every-path-"));
  return () => rmSync(folder, { recursive: true });
});

const account = () => world.tenants.partners[0].accounts[0];

/** Makes a review at a connection of its own, with columns of both as given. */
async function makeSubject(before: Readonly<Record<string, unknown>>): Promise<Subject> {
  const { db } = world.database;
  const externalId = `every-path-${++count}`;
  const one = await addProvider(db, world.api.deps.box, externalId);
  const siteId = await connectStore(db, account(), { provider: one });
  await report(world.api, one, [created(siteId, externalId)]);
  const reviewId = await reviewIdOf(db, externalId);
  const ofReview = Object.keys(before).every((column) => !column.startsWith("p"));
  if (Object.keys(before).length > 0)
    await (ofReview
      ? db.sql`update reviews set ${db.sql(before)} where id = ${reviewId}`
      : db.sql`update store_review_sites set ${db.sql(before)} where id = ${siteId}`);
  return { provider: one, siteId, externalId, reviewId };
}

/** Imports a subject with its state; an import tells nobody. */
async function importSubject(given: Imported): Promise<Subject> {
  const { db, box, clock, config } = world.api.deps;
  const key = `every-path-${++count}`;
  const one = await addProvider(db, box, key);
  const review = { external_id: key, connection_id: key, external_review_id: key, rate: 4 };
  const lines = [
    {
      kind: "connection",
      external_id: key,
      store_id: account().storeIds[0],
      review_site: key,
      ...given.connection,
    },
    { kind: "review", ...review, ...TEXT, ...given.review },
    ...(given.flag === undefined ? [] : [{ kind: "flag", review_id: key, ...given.flag }]),
    ...(given.response === undefined
      ? []
      : [{ kind: "response", review_id: key, ...given.response }]),
  ];
  const file = join(folder, key);
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const options = { file, isDryRun: false, resumes: false, announces: false, skipsFaulty: false };
  const faults: unknown[] = [];
  const onFault = (fault: unknown) => faults.push(fault);
  await importFile({ db, box, clock, config }, options, { onFault, onProgress: () => {} });
  expect(faults).toEqual([]);
  const [site] = await db.sql<{ id: number }[]>`
    select id from store_review_sites where external_id = ${key}`;
  const subject = { provider: one, siteId: site?.id ?? 0, externalId: key };
  return { ...subject, reviewId: await reviewIdOf(db, key) };
}

/** Reads the events of a subject, the length of the queue and of the mails, and the state that events set. */
async function factsOf({ siteId, reviewId }: Subject) {
  const { db } = world.database;
  const events = await db.sql<{ event: string }[]>`
    select event from review_history where store_review_site_id = ${siteId} order by id`;
  const [state] = await db.sql`
    select removed_at is not null as removed, response_body, flag_status, flag_reason, assigned_user_id,
           pull_connected, pull_error_code, post_connected, post_error_code
      from reviews r join store_review_sites s on s.id = r.store_review_site_id where r.id = ${reviewId}`;
  const mails = (await db.sql`select from mails`).length;
  const queued = (await queuedFor(db, subscription)).length;
  return { events: events.map((one) => one.event), state, mails, queued };
}

/** The sources in which a line matches, in alphabetical order; the definition of `recordActions` aside. */
function sourcesWith(pattern: RegExp): string[] {
  const paths = [...new Bun.Glob("{src,dispatcher}/**/*.ts").scanSync(ROOT)].toSorted();
  const matching = paths.filter((path) => pattern.test(readFileSync(join(ROOT, path), "utf8")));
  return matching.filter((path) => path !== "src/outbox/queries.ts");
}
