import { Type, type Static } from "@sinclair/typebox";

import { literals } from "../http/literals.ts";
import { pageQuery } from "../http/list.ts";
import { instantAnswer } from "../http/text.ts";
import { isoInstant } from "../lib/clock.ts";

/**
 * One request ranks up to `ranked` subscriptions with queued events, counts up to `counted` entries of each, and looks for an
 * error in the newest `attempts` of each.
 */
export const BACKLOG_LIMITS = { ranked: 10_000, counted: 1_000, attempts: 100 } as const;

const ORDERS = ["depth", "age"] as const;

/** A row's key: what it is ranked by, and its subscription. */
const isBacklogKey = (key: string): boolean => /^\d{1,15}\.[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(key);

export const backlogQuery = Type.Object({
  ...pageQuery(isBacklogKey),
  order: Type.Optional(
    literals(ORDERS, { description: "The deepest queue first, or the one that waits longest." }),
  ),
});
export type BacklogOrder = (typeof ORDERS)[number];

/** A subscription with events that are queued. */
export interface Backlog {
  readonly rank: number;
  readonly subscriptionId: string;
  readonly label: string;
  readonly partnerId: number;
  readonly partnerName: string;
  readonly isActive: boolean;
  readonly queued: number;
  readonly oldestRecordedAt: Date;
  /** When the first event is tried again; null where it waits for no retry. */
  readonly dueAt: Date | null;
  readonly shard: number;
  readonly dispatcherId: string | null;
  readonly errorAt: Date | null;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
}

const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);

export const BacklogObject = Type.Object(
  {
    subscription_id: Type.String(),
    label: Type.String(),
    partner_id: Type.Integer(),
    partner_name: Type.String(),
    is_active: Type.Boolean(),
    queued: Type.Integer({
      description:
        "Queued events. Exact up to 1,000; above that each further sequence number counts as an event.",
    }),
    oldest_recorded_at: instantAnswer(),
    due_at: orNull(instantAnswer()),
    shard: Type.Integer(),
    dispatcher_id: orNull(Type.String()),
    last_error: orNull(
      Type.Object({
        at: instantAnswer(),
        status_code: orNull(Type.Integer()),
        error_code: orNull(Type.String()),
      }),
    ),
  },
  { title: "Backlog" },
);

export function backlogKey({ rank, subscriptionId }: Backlog): string {
  return `${rank}.${subscriptionId}`;
}

/** Where the page before ended, of a cursor that `backlogQuery` has let pass. */
export function readBacklogKey(key: string | undefined) {
  const [rank = "", subscriptionId = ""] = key?.split(".") ?? [];
  return key === undefined
    ? { afterRank: null, afterId: null }
    : { afterRank: Number(rank), afterId: subscriptionId };
}

export function showBacklog(one: Backlog): Static<typeof BacklogObject> {
  return {
    subscription_id: one.subscriptionId,
    label: one.label,
    partner_id: one.partnerId,
    partner_name: one.partnerName,
    is_active: one.isActive,
    queued: one.queued,
    oldest_recorded_at: isoInstant(one.oldestRecordedAt),
    due_at: one.dueAt && isoInstant(one.dueAt),
    shard: one.shard,
    dispatcher_id: one.dispatcherId,
    last_error: one.errorAt && {
      at: isoInstant(one.errorAt),
      status_code: one.statusCode,
      error_code: one.errorCode,
    },
  };
}
