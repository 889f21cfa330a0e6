import type { Db, Tx } from "../../../db/client.ts";
import { CHUNK, holdQueued, passLogged, releaseHeld } from "../../../db/log.ts";
import { LIMITS } from "../../../db/limits.ts";
import type { Caller } from "../../http/principal.ts";
import { type Subscription, SUSPENDED } from "../model.ts";
import { dropBatchEntriesOf } from "../queries/entries.ts";
import { deleteSequence, subscriptionsOfPartner } from "../queries/subscriptions.ts";
import { disableIn, enableIn, type HeldAction } from "./state.ts";
import { endIn } from "./subscriptions.ts";

/*
 * The suspension of partners and accounts (contract 10.1). The subscriptions of a suspended partner are disabled. The
 * events of an inactive account are held individually: the dispatcher marks an entry as held when it reaches the entry,
 * so that the entries of other accounts are delivered.
 */

interface CompanyChange {
  readonly now: Date;
  /** Whether held events are delivered or skipped; undefined if the company is deactivated. */
  readonly held: HeldAction | undefined;
}

/**
 * Disables the active subscriptions of a partner that is suspended, or enables those that its suspension disabled. The
 * caller has locked the partner and wakes the returned subscriptions after the commit.
 */
export async function suspendPartner(
  tx: Tx,
  caller: Caller,
  partnerId: number,
  { now, held, hourMs }: CompanyChange & { readonly hourMs: number },
): Promise<Subscription[]> {
  const by = { disabledReason: SUSPENDED, disabledNote: null } as const;
  const changed: Subscription[] = [];
  for (const one of await subscriptionsOfPartner(tx, partnerId)) {
    const isStopped = one.state === "active" || one.pendingTestEventId !== null;
    if (held === undefined && isStopped)
      changed.push(await disableIn(tx, caller, one, { by, now }));
    if (held !== undefined && one.disabledReason === SUSPENDED)
      changed.push(
        (await enableIn(tx, caller, one, { held, test: false, now, hourMs })).subscription,
      );
  }
  return changed;
}

/**
 * Releases or drops the held events of an account that is activated. The caller has changed the state of the account,
 * and wakes the returned subscriptions after the commit, also if the account was deactivated.
 */
export async function suspendAccount(
  tx: Tx,
  { id, partnerId }: { readonly id: number; readonly partnerId: number },
  { held }: Pick<CompanyChange, "held">,
): Promise<Subscription[]> {
  const subscriptions = await subscriptionsOfPartner(tx, partnerId);
  for (const one of subscriptions) {
    if (held !== undefined) await releaseHeld(tx, one, { accountId: id, held });
    if (held === "skip") await dropBatchEntriesOf(tx, one, id);
  }
  return subscriptions;
}

/** The most chunks of a queue that an activation with `skip` searches. */
const SEARCHED_CHUNKS = 100;

/**
 * Marks the queued events of a partner's inactive accounts as held, because an activation with `skip` skips only held
 * events. It searches the first 100,000 events of each subscription's queue.
 */
export async function holdWholeQueue(db: Db, partnerId: number, now: Date): Promise<void> {
  const { lockMs } = LIMITS.writerPool;
  for (const { id } of await subscriptionsOfPartner(db, partnerId)) {
    for (let i = 0; i < SEARCHED_CHUNKS; i++)
      if ((await passLogged(db, id, { limit: CHUNK, lockMs })) < CHUNK) break;
    let after: number | null = 0;
    for (let i = 0; i < SEARCHED_CHUNKS && after !== null; i++)
      ({ searchedThrough: after } = await holdQueued(db, {
        id,
        after,
        exceptReviews: [],
        heldAt: now,
      }));
  }
}

/** Deletes all subscriptions of a partner that leaves (contract 10.8). */
export async function endSubscriptionsOf(tx: Tx, partnerId: number, now: Date): Promise<void> {
  for (const one of await subscriptionsOfPartner(tx, partnerId)) {
    const through = await deleteSequence(tx, one.id);
    if (through !== undefined) await endIn(tx, one, { through, now });
  }
}
