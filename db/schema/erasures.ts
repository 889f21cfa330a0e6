import { jsonb, pgTable, text } from "drizzle-orm/pg-core";

import { companyId, userId } from "./companies.ts";
import { bytewise, instant, state } from "./columns.ts";

/** A person whose data are erased (contract 10.8). Once that is done, the row does not tell who it was. */
export const erasures = pgTable("erasures", {
  id: bytewise("id").primaryKey(),
  kind: text("kind", { enum: ["user", "reviewer"] }).notNull(),
  /**
   * State of the erasure. queued → running → done: the maintenance job `erasures`, with its first and its last chunk.
   */
  state: state("queued", "running", "done"),
  /** The person and the bounds of the search, sealed with `erasure:<id>` as associated data; removed at the end. */
  sealedSelector: text("sealed_selector"),
  /** The step and the place in it from which the next chunk continues; null before the first chunk and at the end. */
  reached: text("reached"),
  /** The number of changed and deleted rows by their kind. */
  counts: jsonb("counts").$type<Readonly<Record<string, number>>>().notNull().default({}),
  /** The operator; null if the command asked for it. */
  requestedBy: userId("requested_by"),
  requestedAt: instant("requested_at").notNull(),
  finishedAt: instant("finished_at"),
});

/**
 * A company that is deleted with everything that belongs to it once `due_at` has passed (contract 10.8). The row goes with
 * the company, or when the deletion is cancelled.
 */
export const companyDeletions = pgTable("company_deletions", {
  companyId: companyId("company_id").primaryKey(),
  /** State of the deletion. waiting → running: the maintenance job `deletions`, which then allows no way back. */
  state: state("waiting", "running"),
  reached: text("reached"),
  requestedBy: userId("requested_by").notNull(),
  requestedAt: instant("requested_at").notNull(),
  dueAt: instant("due_at").notNull(),
});
