import type { Db, Tx } from "../../../db/client.ts";
import { CHUNK, passLogged } from "../../../db/log.ts";
import { LIMITS } from "../../../db/limits.ts";
import { digestsOfEmail } from "../../auth/actions/codes.ts";
import { endAccess } from "../../auth/actions/sessions.ts";
import { recordAudit } from "../../auth/queries/audit.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { endSubscriptionsOf } from "../../webhooks/actions/suspension.ts";
import * as queries from "../queries/delete-companies.ts";
import { lockNextDeletion, saveDeletion } from "../queries/deletions.ts";
import { deleteSignInOf, forgetEmail } from "../queries/erase.ts";

interface DeletingDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/** The work of one transaction: the number of deleted rows, and where the step goes on; undefined at its end. */
interface Chunk {
  readonly rows: number;
  readonly next?: string | undefined;
  /** The sessions for which the deletion has to wait until the next run of the job. */
  readonly waitsFor?: readonly string[] | undefined;
}

/** The time in milliseconds that a run waits for transactions, which is longer than those of our requests take. */
const PATIENCE_MS = 6_000;

type Company = NonNullable<Awaited<ReturnType<typeof queries.leavingCompany>>>;
type Step = (tx: Tx, company: Company, at: string, now: Date) => Promise<Chunk>;

/** Repeats a step until it finds nothing. */
const untilNone =
  (remove: (tx: Tx, company: Company) => Promise<number>): Step =>
  async (tx, company) => {
    const rows = await remove(tx, company);
    return { rows, next: rows > 0 ? "" : undefined };
  };

/** Steps for accounts and partners alike. Rows that others refer to come after these. */
const PEOPLE: Readonly<Record<string, Step>> = {
  users: deleteUsers,
  clients: untilNone(queries.deleteClients),
  sso: untilNone(queries.deleteSsoConnections),
  audit: untilNone((tx, { id }) => queries.detachAudit(tx, { companyId: id, userIds: [] })),
};

/** The steps of an account. Without its connections nothing is written about it any more, so they come first. */
const ACCOUNT: Readonly<Record<string, Step>> = {
  inbox: async (tx, account, at) => {
    const { rows, next } = await queries.deleteInboxOf(tx, account, Number(at));
    return { rows, next: next?.toString() };
  },
  connections: async (tx, account, at, now) => {
    const rows = await queries.deleteConnections(tx, account);
    return rows > 0 ? { rows, next: "" } : awaitWriters(tx, at, now);
  },
  queues: passQueues,
  events: async (tx, { id, partnerId }, at) => {
    if (partnerId === null) return { rows: 0 };
    const { rows, next } = await queries.deleteEvents(tx, { id, partnerId }, Number(at));
    return { rows, next: next?.toString() };
  },
  reviews: untilNone(queries.deleteReviews),
  stores: untilNone(queries.deleteStores),
  ...PEOPLE,
};

/** The steps of a partner whose accounts are gone. */
const PARTNER: Readonly<Record<string, Step>> = {
  ...PEOPLE,
  subscriptions: async (tx, { id }) => {
    const subscription = await queries.nextSubscription(tx, id, "");
    if (subscription === undefined) return { rows: 0 };
    return { rows: await queries.deleteQueue(tx, subscription), next: "" };
  },
  settings: async (tx, partner) => {
    await queries.deleteSettings(tx, partner);
    return { rows: 0 };
  },
};

/** The place of a deletion: the company that is deleted now, the step, and the place in the step. */
interface Place {
  readonly companyId: number;
  readonly step: string;
  readonly at: string;
}

const textOf = ({ companyId, step, at }: Place) => `${companyId} ${step} ${at}`;

function placeOf(text: string): Place {
  const [companyId, step = "", ...rest] = text.split(" ");
  return { companyId: Number(companyId), step, at: rest.join(" ") };
}

/**
 * Runs one chunk of the first deletion of a company that is due (contract 10.8): of a partner first its subscriptions,
 * then its accounts one by one, then itself. Work and progress are one transaction, so that a process that dies loses
 * neither, and two processes take turns.
 */
export async function deletionChunk({
  db,
  clock,
  log,
}: DeletingDeps): Promise<{ readonly rows: number; readonly next: string | undefined }> {
  const now = clock.now();
  return db.transaction(async (tx) => {
    const deletion = await lockNextDeletion(tx);
    if (deletion === undefined) return { rows: 0, next: undefined };
    const { companyId: rootId, reached } = deletion;
    const root = await queries.leavingCompany(tx, rootId);
    if (root === undefined) throw new Error("The company of a deletion is missing.");
    if (reached === null) {
      // From here on the triggers let reviews and connections of the company go.
      if (root.type === "partner") await endSubscriptionsOf(tx, rootId, now);
      await saveDeletion(tx, rootId, textOf(await nextPlace(tx, root)));
      return { rows: 0, next: "" };
    }
    const place = placeOf(reached);
    const company = await queries.leavingCompany(tx, place.companyId);
    if (company === undefined) throw new Error("The company of a step is missing.");
    const { rows, next, waitsFor } = await runStep(tx, company, place, now);
    if (waitsFor !== undefined) {
      log.warn("company.deletion_waits", { company_id: rootId, sessions: waitsFor });
      return { rows, next: undefined };
    }
    if (next !== undefined) await saveDeletion(tx, rootId, textOf(next));
    else if (!(await queries.deleteCompanyRow(tx, company)))
      await saveDeletion(tx, rootId, textOf(firstPlace(company)));
    else if (company.id !== rootId)
      await saveDeletion(tx, rootId, textOf(await nextPlace(tx, root)));
    else {
      const { requestedBy } = deletion;
      const details = { company_id: rootId, type: root.type, requested_by: requestedBy };
      const action = "COMPANY_DELETED";
      await recordAudit(tx, { at: now, action, actor: null, requestContext: null, details });
      log.info("company.deleted", { company_id: rootId, type: root.type });
    }
    return { rows, next: "" };
  });
}

const stepsOf = ({ type }: Pick<Company, "type">) => (type === "account" ? ACCOUNT : PARTNER);

const firstPlace = (company: Company): Place => ({
  companyId: company.id,
  step: Object.keys(stepsOf(company))[0] ?? "",
  at: "",
});

/** Returns where the deletion goes on: with the next account of a partner, or with the company itself. */
async function nextPlace(tx: Tx, root: Company): Promise<Place> {
  const accountId = root.type === "partner" ? await queries.firstAccount(tx, root.id) : undefined;
  if (accountId === undefined) return firstPlace(root);
  return firstPlace({ id: accountId, type: "account", partnerId: root.id });
}

/** Runs a chunk of a step. Returns the next place, undefined after the last step of the company. */
async function runStep(
  tx: Tx,
  company: Company,
  { step, at }: Place,
  now: Date,
): Promise<Pick<Chunk, "rows" | "waitsFor"> & { readonly next: Place | undefined }> {
  const steps = stepsOf(company);
  const run = steps[step];
  if (run === undefined) throw new Error(`A deletion has no step ${step}.`);
  const { rows, next, waitsFor } = await run(tx, company, at, now);
  const companyId = company.id;
  if (next !== undefined) return { rows, next: { companyId, step, at: next }, waitsFor };
  const order = Object.keys(steps);
  const following = order[order.indexOf(step) + 1];
  return {
    rows,
    next: following === undefined ? undefined : { companyId, step: following, at: "" },
  };
}

/**
 * Waits for the end of the transactions that were present when the last connection was gone. `at` is the instant from
 * which on it waits, in ms, and the ids of the transactions.
 */
async function awaitWriters(tx: Tx, at: string, now: Date): Promise<Chunk> {
  const [since = now.getTime(), ...awaited] = at === "" ? [] : at.split(" ");
  const writers = await queries.presentWriters(tx);
  const left = at === "" ? writers : writers.filter(({ id }) => awaited.includes(id));
  if (left.length === 0) return { rows: 0 };
  const isLong = Math.abs(now.getTime() - Number(since)) >= PATIENCE_MS;
  return {
    rows: 0,
    next: [since, ...left.map(({ id }) => id)].join(" "),
    waitsFor: isLong ? left.map(({ session }) => session) : undefined,
  };
}

/**
 * Moves the events of each log of the account's partner into `outbox`, as a suspension does, so that those of the account
 * can be deleted without a gap in the log, and the others stay queued in their order.
 */
async function passQueues(tx: Tx, { partnerId }: Company, at: string): Promise<Chunk> {
  if (partnerId === null) return { rows: 0 };
  const subscription = await queries.nextSubscription(tx, partnerId, at);
  if (subscription === undefined) return { rows: 0 };
  const { lockMs } = LIMITS.maintenance;
  const passed = await passLogged(tx, subscription.id, { limit: CHUNK, lockMs });
  return { rows: 0, next: passed === CHUNK ? at : subscription.id };
}

/** Deletes the first users of a company; before them their rows in the audit log lose the ids, and their sign-ins go. */
async function deleteUsers(tx: Tx, company: Company, _: string, now: Date): Promise<Chunk> {
  const found = await queries.firstUsers(tx, company);
  if (found.length === 0) return { rows: 0 };
  const userIds = found.map(({ id }) => id);
  await endAccess(tx, userIds, now);
  await deleteSignInOf(tx, userIds);
  await forgetEmail(
    tx,
    found.flatMap(({ email }) => digestsOfEmail(email)),
  );
  const detached = await queries.detachAudit(tx, { userIds });
  const signIns = detached > 0 ? 0 : await queries.deleteSignIns(tx, userIds);
  const isLeft = detached > 0 || signIns === queries.DELETED_ROWS;
  const deleted = isLeft ? 0 : await queries.deleteUsers(tx, userIds);
  return { rows: detached + signIns + deleted, next: "" };
}
