import type { Db, Tx } from "../../../db/client.ts";
import { endAccess } from "../../auth/sign-in/sessions.ts";
import { digestsOfEmail } from "../../auth/passwords/codes.ts";
import { emailDigest } from "../../auth/email.ts";
import type { Clock } from "../../lib/clock.ts";
import { normalEmail } from "../../lib/email.ts";
import type { Log } from "../../lib/log.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { openMail } from "../../outbox/mail.ts";
import type { Counts, Selector } from "../erasure-model.ts";
import {
  isChanged,
  type Personal,
  withoutActor,
  withoutReviewer,
  namesAddress,
} from "../erasure-rules.ts";
import * as queries from "../queries/erase.ts";
import { isErasureOpen, lockNextErasure, saveErasure } from "../queries/erasures.ts";
import { erasureAssociatedData } from "./erasures.ts";

interface EraseDeps {
  readonly db: Db;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The result of one transaction of a step of an erasure. `counts` contains the numbers of changed rows by kind. `next`
 * is the position at which the step continues; undefined when the step is complete.
 */
interface Chunk {
  readonly counts: Counts;
  readonly next?: string | undefined;
}

interface Context<S extends Selector> extends Pick<EraseDeps, "box" | "clock"> {
  readonly selector: S;
}
type Step<S extends Selector> = (tx: Tx, context: Context<S>, at: string) => Promise<Chunk>;

type UserSelector = Extract<Selector, { kind: "user" }>;
type ReviewerSelector = Extract<Selector, { kind: "reviewer" }>;

/**
 * Runs one chunk of the first erasure that is not done (contract 10.8). Each chunk commits its work and its progress
 * together, so that a crash does not separate them. The lock on the erasure keeps two processes from working at it at
 * the same time.
 */
export async function eraseChunk(
  deps: EraseDeps,
): Promise<{ readonly rows: number; readonly next: string | undefined }> {
  const { db, box, log } = deps;
  // This first check saves the transaction if no erasure is open, which is the usual case.
  if (!(await isErasureOpen(db))) return { rows: 0, next: undefined };
  return db.transaction(async (tx) => {
    const erasure = await lockNextErasure(tx);
    if (erasure?.sealedSelector == null) return { rows: 0, next: undefined };
    const { id, kind, sealedSelector } = erasure;
    const selector = openSelector(box, id, sealedSelector);
    const steps =
      selector.kind === "user" ? bind(USER_STEPS, selector) : bind(REVIEWER_STEPS, selector);
    const [name, at] = parseErasureProgress(erasure.reached);
    const order = Object.keys(steps);
    const step = name ?? order[0] ?? "";
    const run = steps[step];
    if (run === undefined) throw new Error(`An erasure has no step ${step}.`);
    const chunk = await run(tx, deps, at);
    const next = chunk.next === undefined ? order[order.indexOf(step) + 1] : step;
    const counts = sumCounts(erasure.counts, chunk.counts);
    const reached = next && `${next} ${chunk.next ?? ""}`;
    await saveErasure(tx, id, { reached, counts });
    if (reached === undefined) log.info("erasure.done", { erasure_id: id, kind, ...counts });
    return { rows: Object.values(chunk.counts).reduce((all, one) => all + one, 0), next: "" };
  });
}

function openSelector(box: SecretBox, id: string, sealed: string): Selector {
  // The cast is safe, because only `requestErasure` seals texts with this associated data, and it seals a `Selector`.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return JSON.parse(box.open(sealed, erasureAssociatedData(id))) as Selector;
}

function parseErasureProgress(reached: string | null): [step: string | undefined, at: string] {
  if (reached === null) return [undefined, ""];
  const space = reached.indexOf(" ");
  return [reached.slice(0, space), reached.slice(space + 1)];
}

type BoundSteps = Readonly<Record<string, (tx: Tx, deps: EraseDeps, at: string) => Promise<Chunk>>>;

function bind<S extends Selector>(
  steps: Readonly<Record<string, Step<S>>>,
  selector: S,
): BoundSteps {
  return Object.fromEntries(
    Object.entries(steps).map(([name, step]) => [
      name,
      (tx: Tx, deps: EraseDeps, at: string) => step(tx, { ...deps, selector }, at),
    ]),
  );
}

function sumCounts(before: Readonly<Record<string, number>>, more: Counts): Counts {
  const all: Record<string, number> = { ...before };
  for (const [kind, rows] of Object.entries(more))
    if (rows > 0) all[kind] = (all[kind] ?? 0) + rows;
  return all;
}

const REVIEWER_STEPS: Readonly<Record<string, Step<ReviewerSelector>>> = {
  reviews: eraseReviews,
  inbox: async (tx, _, at) => {
    const { rows, next } = await queries.eraseInbox(tx, Number(at));
    return { counts: { actions: rows }, next };
  },
};

/**
 * Erases the next reviews of the reviewer and the events of these reviews. The position `at` is the id of the last
 * review that was read. If events of that review are left, a slash and the id of its last erased event follow.
 */
async function eraseReviews(
  tx: Tx,
  { selector }: Context<ReviewerSelector>,
  at: string,
): Promise<Chunk> {
  const [after = 0, event] = at === "" ? [] : at.split("/").map(Number);
  if (event !== undefined) {
    const { changed, last } = await withoutReviewerOf(tx, after, event);
    const next = last === undefined ? String(after) : `${after}/${last}`;
    return { counts: await queries.replaceEvents(tx, changed), next };
  }
  const { found, end } = await queries.nextReviews(tx, selector, after);
  let counts: Counts = {};
  let next = end?.toString();
  const events: queries.EventRow[] = [];
  for (const id of found) {
    const reviews = await queries.eraseReview(tx, id);
    const mails = await queries.dropMails(tx, queries.isMailAbout(id));
    counts = sumCounts(counts, { reviews, mails });
    const { changed, last } = await withoutReviewerOf(tx, id, 0);
    events.push(...changed);
    if (last === undefined && events.length < queries.CHANGED_ROWS) continue;
    next = last === undefined ? String(id) : `${id}/${last}`;
    break;
  }
  // The events of all reviews are replaced at the end in one call, because deliveries of the partners wait from the
  // replacement until the commit.
  return { counts: sumCounts(counts, await queries.replaceEvents(tx, events)), next };
}

/**
 * Reads the next events of a review after the id `after`, and returns those that change without their reviewer, in the
 * changed form. `last` is the id of the last event that was read; undefined if no events follow.
 */
async function withoutReviewerOf(tx: Tx, reviewId: number, after: number) {
  const found = await queries.eventsOfReview(tx, reviewId, after);
  const last = found.length < queries.CHANGED_ROWS ? undefined : found.at(-1)?.id;
  return { changed: changedOf(found, withoutReviewer), last };
}

function changedOf(
  found: readonly queries.EventRow[],
  without: (event: Personal) => Personal,
): queries.EventRow[] {
  return found.flatMap(({ id, eventId, partnerId, ...event }) => {
    const after = without(event);
    return isChanged(event, after) ? [{ id, eventId, partnerId, ...after }] : [];
  });
}

const USER_STEPS: Readonly<Record<string, Step<UserSelector>>> = {
  user: async (tx, { selector: { userId, email }, clock }) => {
    const users = await queries.eraseUser(tx, userId, { digests: digestsOfEmail(email) });
    // The request has done this before. It is repeated for requests that an earlier version has stored.
    await endAccess(tx, [userId], clock.now());
    return { counts: { users } };
  },
  sign_ins: async (tx, { selector: { userId } }, at) => {
    const { rows, next } = await queries.eraseSignIns(tx, userId, at);
    return { counts: { sign_ins: rows }, next };
  },
  audit: auditStep((tx, { userId }, after) =>
    queries.eraseAudit(tx, queries.AUDIT_ROWS.acted(userId), after),
  ),
  impersonations: auditStep((tx, { userId }, after) =>
    queries.eraseAudit(tx, queries.AUDIT_ROWS.impersonated(userId), after),
  ),
  wrong_codes: auditStep((tx, { email }, after) =>
    queries.eraseWrongCodes(tx, emailDigest(email), after),
  ),
  events: async (tx, { selector: { userId, account } }, at) => {
    if (account === null) return { counts: {} };
    const { events, next } = await queries.eventsOfActor(tx, { userId, account }, Number(at));
    const counts = await queries.replaceEvents(tx, changedOf(events, withoutActor));
    return { counts, next: next?.toString() };
  },
  mails: async (tx, { selector: { email }, box }, at) => {
    const { found, next } = await queries.waitingMails(tx, at);
    const own = found.filter(({ id, sealedMessage }) => {
      if (sealedMessage === null) return false;
      // The text of an invitation has the address of the person who invites.
      const { to, text } = openMail(box, id, sealedMessage);
      return normalEmail(to) === normalEmail(email) || namesAddress(text, email);
    });
    const ids = own.map(({ id }) => id);
    return { counts: { mails: await queries.dropMails(tx, queries.isMail(ids)) }, next };
  },
  responses: eraseResponses,
  recipients: async (tx, { selector: { email } }) => ({
    counts: { recipients: await queries.eraseRecipient(tx, email) },
  }),
};

function auditStep(
  erase: (tx: Tx, selector: UserSelector, after: number) => Promise<queries.Walked>,
): Step<UserSelector> {
  return async (tx, { selector }, at) => {
    const { rows, next } = await erase(tx, selector, Number(at));
    return { counts: { audit_rows: rows }, next };
  };
}

/**
 * Deletes the stored requests with an `Idempotency-Key` of the user. Also deletes the responses to requests of other
 * users that contain the user's email.
 */
async function eraseResponses(
  tx: Tx,
  { selector: { userId, email }, box }: Context<UserSelector>,
  at: string,
): Promise<Chunk> {
  const { found, next } = await queries.storedResponses(tx, at);
  const isOwn = (key: string) => key.startsWith(`${userId}:`);
  const names = (key: string, sealed: string) =>
    box.open(sealed, `idempotency:${key}`).toLowerCase().includes(JSON.stringify(email));
  const own = found.filter(({ key }) => isOwn(key));
  const naming = found.filter(
    ({ key, sealedResponse: sealed }) => !isOwn(key) && sealed !== null && names(key, sealed),
  );
  const deleted = await queries.deleteKeys(
    tx,
    own.map(({ key }) => key),
  );
  const dropped = await queries.dropResponses(
    tx,
    naming.map(({ key }) => key),
  );
  return { counts: { responses: deleted + dropped }, next };
}
