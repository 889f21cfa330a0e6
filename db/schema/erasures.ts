import { jsonb, pgTable, text } from "drizzle-orm/pg-core";

import { companyId, userId } from "./companies.ts";
import { bytewise, instant, state } from "./columns.ts";

/** A person whose data are erased (contract 10.8). After the erasure the row does not identify the person any more. */
export const erasures = pgTable("erasures", {
  id: bytewise("id").primaryKey(),
  kind: text("kind", { enum: ["user", "reviewer"] }).notNull(),
  /**
   * State of the erasure. The maintenance job `erasures` sets `running` with its first chunk and `done` with its last
   * one.
   */
  state: state("queued", "running", "done"),
  /** The person and the bounds of the search, sealed with `erasure:<id>` as associated data. Deleted at the end. */
  sealedSelector: text("sealed_selector"),
  /**
   * The step, and the position in it, at which the next chunk continues; null before the first chunk and at the end.
   */
  reached: text("reached"),
  /** The numbers of changed and deleted rows by kind of row. */
  counts: jsonb("counts").$type<Readonly<Record<string, number>>>().notNull().default({}),
  /** The operator who requested the erasure; null if it was requested by the command. */
  requestedBy: userId("requested_by"),
  requestedAt: instant("requested_at").notNull(),
  finishedAt: instant("finished_at"),
});

/**
 * A company that is deleted with all its data after `due_at` (contract 10.8). The row is deleted with the company, or
 * when the deletion is cancelled.
 */
export const companyDeletions = pgTable("company_deletions", {
  companyId: companyId("company_id").primaryKey(),
  /**
   * State of the deletion. The maintenance job `deletions` sets `running`, after which the deletion cannot be
   * cancelled.
   */
  state: state("waiting", "running"),
  reached: text("reached"),
  requestedBy: userId("requested_by").notNull(),
  requestedAt: instant("requested_at").notNull(),
  dueAt: instant("due_at").notNull(),
});
