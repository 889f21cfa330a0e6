import type { Db, Tx } from "../../../db/client.ts";
import { endAccess } from "../../auth/actions/sessions.ts";
import { digestsOfEmail } from "../../auth/actions/codes.ts";
import { emailDigest } from "../../auth/email.ts";
import type { Clock } from "../../lib/clock.ts";
import { normalEmail } from "../../lib/email.ts";
import type { Log } from "../../lib/log.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import { openMail } from "../../outbox/mail.ts";
import type { Counts, Selector } from "../erasure-model.ts";
import { isChanged, type Personal, withoutActor, withoutReviewer } from "../erasure-rules.ts";
import * as queries from "../queries/erase.ts";
import { isErasureOpen, lockNextErasure, saveErasure } from "../queries/erasures.ts";
import { erasureAssociatedData } from "./erasures.ts";

interface EraseDeps {
  readonly db: Db;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly log: Log;
}

/** The work of one transaction: what it changed, and where the step goes on; undefined at its end. */
interface Chunk {
  readonly counts: Counts;
  readonly next?: string | undefined;
}

interface Context<S extends Selector> extends Pick<EraseDeps, "box" | "clock"> {
  readonly selector: S;
}
type Step<S extends Selector> = (tx: Tx, context: Context<S>, at: string) => Promise<Chunk>;

type OfUser = Extract<Selector, { kind: "user" }>;
type OfReviewer = Extract<Selector, { kind: "reviewer" }>;

/**
 * Runs one chunk of the first erasure that is not done (contract 10.8). Work and progress are one transaction, so that a
 * process that dies loses neither, and two processes take turns.
 */
export async function eraseChunk(
  deps: EraseDeps,
): Promise<{ readonly rows: number; readonly next: string | undefined }> {
  const { db, box, log } = deps;
  // Without a transaction, because there is nearly never an erasure.
  if (!(await isErasureOpen(db))) return { rows: 0, next: undefined };
  return db.transaction(async (tx) => {
    const erasure = await lockNextErasure(tx);
    if (erasure?.sealedSelector == null) return { rows: 0, next: undefined };
    const { id, kind, sealedSelector } = erasure;
    const selector = openSelector(box, id, sealedSelector);
    const steps =
      selector.kind === "user" ? bound(USER_STEPS, selector) : bound(REVIEWER_STEPS, selector);
    const [name, at] = placeOf(erasure.reached);
    const order = Object.keys(steps);
    const step = name ?? order[0] ?? "";
    const run = steps[step];
    if (run === undefined) throw new Error(`An erasure has no step ${step}.`);
    const chunk = await run(tx, deps, at);
    const next = chunk.next === undefined ? order[order.indexOf(step) + 1] : step;
    const counts = sum(erasure.counts, chunk.counts);
    const reached = next && `${next} ${chunk.next ?? ""}`;
    await saveErasure(tx, id, { reached, counts });
    if (reached === undefined) log.info("erasure.done", { erasure_id: id, kind, ...counts });
    return { rows: Object.values(chunk.counts).reduce((all, one) => all + one, 0), next: "" };
  });
}

function openSelector(box: SecretBox, id: string, sealed: string): Selector {
  // Only `requestErasure` seals with this associated data.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return JSON.parse(box.open(sealed, erasureAssociatedData(id))) as Selector;
}

function placeOf(reached: string | null): [step: string | undefined, at: string] {
  if (reached === null) return [undefined, ""];
  const space = reached.indexOf(" ");
  return [reached.slice(0, space), reached.slice(space + 1)];
}

type BoundSteps = Readonly<Record<string, (tx: Tx, deps: EraseDeps, at: string) => Promise<Chunk>>>;

function bound<S extends Selector>(
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

function sum(before: Readonly<Record<string, number>>, more: Counts): Counts {
  const all: Record<string, number> = { ...before };
  for (const [kind, rows] of Object.entries(more))
    if (rows > 0) all[kind] = (all[kind] ?? 0) + rows;
  return all;
}

const REVIEWER_STEPS: Readonly<Record<string, Step<OfReviewer>>> = {
  reviews: eraseReviews,
  inbox: async (tx, _, at) => {
    const { rows, next } = await queries.eraseInbox(tx, Number(at));
    return { counts: { actions: rows }, next };
  },
};

/**
 * Empties the next reviews of the reviewer with their events. The place is the id of the last review, and that of its last
 * event if some of its events are left.
 */
async function eraseReviews(tx: Tx, { selector }: Context<OfReviewer>, at: string): Promise<Chunk> {
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
    counts = sum(counts, { reviews, mails });
    const { changed, last } = await withoutReviewerOf(tx, id, 0);
    events.push(...changed);
    if (last === undefined && events.length < queries.CHANGED_ROWS) continue;
    next = last === undefined ? String(id) : `${id}/${last}`;
    break;
  }
  // All at once and at the end, because deliveries wait from the first of these events until the commit.
  return { counts: sum(counts, await queries.replaceEvents(tx, events)), next };
}

/** Returns the next events of a review after an event as they are replaced. `last` is undefined if no more follow. */
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

const USER_STEPS: Readonly<Record<string, Step<OfUser>>> = {
  user: async (tx, { selector: { userId, email }, clock }) => {
    const users = await queries.eraseUser(tx, userId, { digests: digestsOfEmail(email) });
    // Somebody may have activated the user since the request.
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
    const own = found.filter(
      ({ id, sealedMessage }) =>
        sealedMessage !== null &&
        normalEmail(openMail(box, id, sealedMessage).to) === normalEmail(email),
    );
    const ids = own.map(({ id }) => id);
    return { counts: { mails: await queries.dropMails(tx, queries.isMail(ids)) }, next };
  },
  responses: eraseResponses,
  recipients: async (tx, { selector: { email } }) => ({
    counts: { recipients: await queries.eraseRecipient(tx, email) },
  }),
};

function auditStep(
  erase: (tx: Tx, selector: OfUser, after: number) => Promise<queries.Walked>,
): Step<OfUser> {
  return async (tx, { selector }, at) => {
    const { rows, next } = await erase(tx, selector, Number(at));
    return { counts: { audit_rows: rows }, next };
  };
}

/** Deletes the user's own keys of creating requests, and the stored responses of others that name the user. */
async function eraseResponses(
  tx: Tx,
  { selector: { userId, email }, box }: Context<OfUser>,
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
