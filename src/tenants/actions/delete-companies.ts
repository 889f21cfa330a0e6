import type { Db, Tx } from "../../../db/client.ts";
import { CHUNK, passLogged } from "../../../db/log.ts";
import { LIMITS } from "../../../db/limits.ts";
import { digestsOfEmail } from "../../auth/passwords/codes.ts";
import { endAccess } from "../../auth/sign-in/sessions.ts";
import { recordAudit } from "../../audit/queries.ts";
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

/**
 * The result of one transaction of a step of a deletion. `rows` is the number of changed and deleted rows. `next` is
 * the position at which the step continues; undefined when the step is complete.
 */
interface Chunk {
  readonly rows: number;
  readonly next?: string | undefined;
  /**
   * The database sessions whose transactions the deletion has waited for too long. If it is set, this run of the
   * maintenance job stops, and the next run continues to wait; undefined otherwise.
   */
  readonly waitsFor?: readonly string[] | undefined;
}

/**
 * The time in milliseconds for which a run of the job waits for open transactions. The transactions of ReviewRelay's
 * own requests are shorter.
 */
const PATIENCE_MS = 6_000;

type Company = NonNullable<Awaited<ReturnType<typeof queries.leavingCompany>>>;
type Step = (tx: Tx, company: Company, at: string, now: Date) => Promise<Chunk>;

/** Creates a step that calls `remove` in one transaction after another, until it finds no rows. */
const untilNone =
  (remove: (tx: Tx, company: Company) => Promise<number>): Step =>
  async (tx, company) => {
    const rows = await remove(tx, company);
    return { rows, next: rows > 0 ? "" : undefined };
  };

/**
 * The last steps of an account and the first steps of a partner. Rows are deleted before the rows to which they refer.
 */
const PEOPLE_STEPS: Readonly<Record<string, Step>> = {
  users: deleteUsers,
  clients: untilNone(queries.deleteClients),
  sso: untilNone(queries.deleteSsoConnections),
  audit: untilNone((tx, { id }) => queries.detachAudit(tx, { companyId: id, userIds: [] })),
};

/**
 * The steps that delete an account. Its connections are deleted before its events and reviews, because without a
 * connection nothing new is written about the account.
 */
const ACCOUNT_STEPS: Readonly<Record<string, Step>> = {
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
  ...PEOPLE_STEPS,
};

/** The steps that delete a partner. All accounts of the partner are deleted before the first step. */
const PARTNER_STEPS: Readonly<Record<string, Step>> = {
  ...PEOPLE_STEPS,
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

/** The progress of a deletion: the company that is deleted now, the name of the step, and the position in the step. */
interface Progress {
  readonly companyId: number;
  readonly step: string;
  readonly at: string;
}

const textOf = ({ companyId, step, at }: Progress) => `${companyId} ${step} ${at}`;

function parseDeletionProgress(text: string): Progress {
  const [companyId, step = "", ...rest] = text.split(" ");
  return { companyId: Number(companyId), step, at: rest.join(" ") };
}

/**
 * Runs one chunk of the first deletion of a company that is due (contract 10.8). The deletion of a partner first ends
 * its subscriptions, then deletes its accounts one by one, then the partner itself. Each chunk commits its work and its
 * progress together, so that a crash does not separate them. The lock on the deletion keeps two processes from working
 * at it at the same time.
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
      // `saveDeletion` sets the state `running`, in which the triggers allow the deletion of the company's reviews and
      // connections.
      if (root.type === "partner") await endSubscriptionsOf(tx, rootId, now);
      await saveDeletion(tx, rootId, textOf(await nextStep(tx, root)));
      return { rows: 0, next: "" };
    }
    const progress = parseDeletionProgress(reached);
    const company = await queries.leavingCompany(tx, progress.companyId);
    if (company === undefined) throw new Error("The company of a step is missing.");
    const { rows, next, waitsFor } = await runStep(tx, company, progress, now);
    if (waitsFor !== undefined) {
      log.warn("company.deletion_waits", { company_id: rootId, sessions: waitsFor });
      return { rows, next: undefined };
    }
    if (next !== undefined) await saveDeletion(tx, rootId, textOf(next));
    else if (!(await queries.deleteCompanyRow(tx, company)))
      await saveDeletion(tx, rootId, textOf(firstStep(company)));
    else if (company.id !== rootId)
      await saveDeletion(tx, rootId, textOf(await nextStep(tx, root)));
    else {
      const { requestedBy } = deletion;
      const details = { company_id: rootId, type: root.type, requested_by: requestedBy };
      const action = "COMPANY_DELETED";
      await recordAudit(tx, { at: now, action, actor: null, requestContext: null, details });
    }
    return { rows, next: "" };
  });
}

const stepsOf = ({ type }: Pick<Company, "type">) =>
  type === "account" ? ACCOUNT_STEPS : PARTNER_STEPS;

const firstStep = (company: Company): Progress => ({
  companyId: company.id,
  step: Object.keys(stepsOf(company))[0] ?? "",
  at: "",
});

/**
 * Returns the first step of the next company that the deletion deletes: the next account of a partner, or else the
 * company itself.
 */
async function nextStep(tx: Tx, root: Company): Promise<Progress> {
  const accountId = root.type === "partner" ? await queries.firstAccount(tx, root.id) : undefined;
  if (accountId === undefined) return firstStep(root);
  return firstStep({ id: accountId, type: "account", partnerId: root.id });
}

/**
 * Runs one chunk of a step. The returned `next` is the progress after it; undefined after the last step of the company.
 */
async function runStep(
  tx: Tx,
  company: Company,
  { step, at }: Progress,
  now: Date,
): Promise<Pick<Chunk, "rows" | "waitsFor"> & { readonly next: Progress | undefined }> {
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
 * Waits until all transactions have ended that were open when the account's last connection was deleted. `at` contains
 * the start of the wait in ms and the ids of these transactions; it is empty at the start.
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
 * Moves the events in the log of each subscription of the account's partner into `outbox`, as a suspension does. The
 * events of the account can then be deleted without a gap in a log, and the other events stay queued in order.
 */
async function passQueues(tx: Tx, { partnerId }: Company, at: string): Promise<Chunk> {
  if (partnerId === null) return { rows: 0 };
  const subscription = await queries.nextSubscription(tx, partnerId, at);
  if (subscription === undefined) return { rows: 0 };
  const { lockMs } = LIMITS.maintenance;
  const passed = await passLogged(tx, subscription.id, { limit: CHUNK, lockMs });
  return { rows: 0, next: passed === CHUNK ? at : subscription.id };
}

/**
 * Deletes the next few users of a company (`firstUsers`). First removes their ids from the audit log and deletes their
 * sign-ins, for which several chunks may be necessary.
 */
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
