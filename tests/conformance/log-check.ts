import type { RawDb } from "../../db/client.ts";

interface Place {
  readonly subscriptionId: string;
  readonly sequence: number;
  /** The tables that have the entry. More than one is an error. */
  readonly places: string;
}

interface Offset {
  readonly id: string;
  readonly settledThrough: number;
  readonly skippedThrough: number;
  readonly lastSequence: number | null;
  readonly placed: number;
}

/**
 * Checks the invariants of the log in the tables after every statement: - The queued entries are the log after the
 * offset and the rows that are not skipped. No entry is in both. - Each assigned sequence is queued, skipped, or
 * settled by one attempt. - No offset decreases.
 */
export class LogCheck {
  readonly #db: RawDb;
  readonly #before = new Map<string, Offset>();

  constructor(db: RawDb) {
    this.#db = db;
  }

  async check(): Promise<void> {
    const { sql } = this.#db;
    const doubled = await sql<Place[]>`
      select subscription_id as "subscriptionId", sequence, string_agg(place, ' and ') as places
        from (${this.#places()}) p
       group by subscription_id, sequence having count(*) > 1`;
    const [first] = doubled;
    if (first !== undefined)
      throw wrong(first.subscriptionId, `#${first.sequence}: ${first.places}`);
    for (const offset of await this.#offsets()) this.#checkOffset(offset);
  }

  #places() {
    return this.#db.sql`
      select subscription_id, sequence, 'queued' as place from queued_entries
       union all
      select subscription_id, sequence, 'skipped' from skipped_entries
       union all
      select subscription_id, sequence, 'settled' from delivery_attempts where recorded_at is not null`;
  }

  /** Computes the queued entries from the tables and not from the view. */
  #queued() {
    return this.#db.sql`
      select o.subscription_id, o.sequence
        from outbox o join outbox_offsets f using (subscription_id)
       where o.skipped_at is null and o.sequence > f.skipped_through
       union all
      select s.id, h.sequence
        from review_history h
        join webhook_subscriptions s on s.number = h.subscription_number
        join outbox_offsets f on f.subscription_id = s.id
       where h.sequence > f.settled_through`;
  }

  async #offsets(): Promise<Offset[]> {
    const { sql } = this.#db;
    const different = await sql<{ id: string; sequence: number }[]>`
      select subscription_id as id, sequence
        from (select subscription_id, sequence from queued_entries union all ${this.#queued()}) q
       group by subscription_id, sequence having count(*) <> 2`;
    const [first] = different;
    if (first !== undefined) throw wrong(first.id, `#${first.sequence} is queued by one of both`);
    return sql<Offset[]>`
      select f.subscription_id as id, f.settled_through as "settledThrough", f.skipped_through as "skippedThrough",
             q.last_sequence as "lastSequence",
             (select count(*)::int from (${this.#places()}) p where p.subscription_id = f.subscription_id) as placed
        from outbox_offsets f left join outbox_sequences q using (subscription_id)`;
  }

  #checkOffset(now: Offset): void {
    const { id, settledThrough, skippedThrough, placed } = now;
    const before = this.#before.get(id);
    // The row of a deleted subscription is gone, and no further sequence was assigned.
    const last = now.lastSequence ?? before?.lastSequence ?? placed;
    if (placed !== last) throw wrong(id, `of ${last} sequences ${placed} are anywhere`);
    if (settledThrough > last || skippedThrough > last) throw wrong(id, "its offset is too far");
    if (settledThrough < (before?.settledThrough ?? 0)) throw wrong(id, "its offset fell");
    if (skippedThrough < (before?.skippedThrough ?? 0)) throw wrong(id, "what it skipped is back");
    this.#before.set(id, { ...now, lastSequence: last });
  }
}

function wrong(subscriptionId: string, what: string): Error {
  return new Error(`The log of ${subscriptionId}: ${what}.`);
}
