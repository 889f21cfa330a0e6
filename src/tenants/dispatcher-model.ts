import { type Static, Type } from "@sinclair/typebox";

import { pageQuery } from "../http/list.ts";
import { literals } from "../http/principal.ts";
import { type RowOf, shown } from "../http/shown.ts";
import { instantAnswer, orNull } from "../http/text.ts";
import { QUARANTINED } from "../webhooks/stats-model.ts";

/**
 * Limits of the lists (`subscriptions`, `rows`) and of the counts (`counted`) in one response about the state of the
 * dispatchers. If a list or a count exceeds its limit, `truncated` is true.
 */
export const STATE_LIMITS = { subscriptions: 1_000, rows: 100, counted: 10_000 } as const;

const instantOrNull = orNull(instantAnswer());
const seconds = Type.Number({ minimum: 0, examples: [0.4] });
const manySubscriptions = Type.Integer({ examples: [118] });

export const DispatcherObject = Type.Object(
  {
    dispatchers: Type.Array(
      Type.Object({
        id: Type.String(),
        started_at: instantAnswer(),
        renewed_at: instantAnswer(),
        silent_ms: Type.Integer({ examples: [240] }),
        shards: Type.Integer({ examples: [32] }),
        subscriptions: manySubscriptions,
        lag_s: seconds,
        memory_mb: orNull(Type.Integer(), { examples: [210] }),
        outage: orNull(Type.String(), {
          description:
            "Cause of an outage that keeps the dispatcher from reaching receivers: `machine`, `proxy`, `policy`, `names` or `network`.",
          examples: [null],
        }),
        outage_since: instantOrNull,
      }),
    ),
    shards: Type.Array(
      Type.Object({
        id: Type.Integer(),
        dispatcher_id: orNull(Type.String()),
        epoch: Type.Integer({ examples: [3] }),
        subscriptions: manySubscriptions,
        lag_s: seconds,
      }),
    ),
    lag: Type.Object({
      lag_s: seconds,
      oldest_recorded_at: instantOrNull,
      entries: Type.Integer({ examples: [12] }),
      subscriptions: manySubscriptions,
    }),
    blocked_heads: Type.Array(
      Type.Object({
        subscription_id: Type.String(),
        partner_id: Type.Integer(),
        shard: Type.Integer(),
        sequence: Type.Integer(),
        event_id: Type.String(),
        event: Type.String(),
        attempt: Type.Integer(),
        due_at: instantAnswer(),
        recorded_at: instantAnswer(),
      }),
    ),
    disabled_subscriptions: Type.Array(
      Type.Object({
        id: Type.String(),
        partner_id: Type.Integer(),
        label: Type.String(),
        disabled_at: instantAnswer(),
        disabled_reason: Type.String({ examples: ["consecutive_failures"] }),
        consecutive_failure_count: Type.Integer({ examples: [20] }),
      }),
    ),
    quarantined_lanes: Type.Array(
      Type.Object({ dispatcher_id: Type.String(), subscription_id: Type.String(), ...QUARANTINED }),
    ),
    mails: Type.Object({ queued: Type.Integer({ examples: [0] }), next_due_at: instantOrNull }),
    truncated: Type.Boolean(),
  },
  {
    title: "Dispatcher",
    examples: [
      {
        blocked_heads: [],
        disabled_subscriptions: [],
        quarantined_lanes: [],
        truncated: false,
      },
    ],
  },
);

type State = RowOf<typeof DispatcherObject>;
type LagFields = "subscriptions" | "lagS";
/**
 * A dispatcher. `silentMs` is the time since its last renewal, measured by the clock of PostgreSQL, by which leases
 * also expire.
 */
export type DispatcherRow = Omit<State["dispatchers"][number], LagFields | "shards">;
export type ShardRow = Omit<State["shards"][number], LagFields>;
export type QuarantinedRow = State["quarantinedLanes"][number];
export type BlockedRow = State["blockedHeads"][number];
export type DisabledRow = State["disabledSubscriptions"][number];

/** The first queued event of a webhook subscription. */
export interface HeadRow {
  readonly shard: number;
  readonly subscriptionId: string;
  readonly isActive: boolean;
  readonly isWaiting: boolean;
  readonly recordedAt: Date;
}

export interface QueueCounts {
  /** Number of queued entries of all subscriptions. It is at most `STATE_LIMITS.counted` + 1, where the count stops. */
  readonly entries: number;
  readonly mails: number;
  readonly mailDueAt: Date | null;
}

export interface DispatcherState {
  readonly at: Date;
  readonly dispatchers: readonly DispatcherRow[];
  readonly shards: readonly ShardRow[];
  readonly heads: readonly HeadRow[];
  readonly blocked: readonly BlockedRow[];
  readonly disabled: readonly DisabledRow[];
  readonly quarantined: readonly QuarantinedRow[];
  readonly counts: QueueCounts;
}

/**
 * Renders the state of the dispatchers together with the lag, which is the age of the oldest event that could be sent
 * now. An event could be sent now if it is the first queued event of an active subscription and does not wait for a
 * retry.
 */
export function showDispatcher(state: DispatcherState): Static<typeof DispatcherObject> {
  const { at, dispatchers, shards, heads, blocked, disabled, quarantined, counts } = state;
  const { subscriptions, rows, counted } = STATE_LIMITS;
  const oldest = oldestOf(heads);
  const lagOfShards = (ids: readonly number[]) =>
    lagOf(
      heads.filter(({ shard }) => ids.includes(shard)),
      at,
    );
  return shown(DispatcherObject, {
    dispatchers: dispatchers.map((one) => {
      const held = shards.flatMap((s) => (s.dispatcherId === one.id ? [s.id] : []));
      return { ...one, shards: held.length, ...lagOfShards(held) };
    }),
    shards: shards.map((one) => ({ ...one, ...lagOfShards([one.id]) })),
    lag: {
      lagS: secondsSince(oldest, at),
      oldestRecordedAt: oldest ?? null,
      entries: Math.min(counts.entries, counted),
      subscriptions: Math.min(heads.length, subscriptions),
    },
    blockedHeads: blocked.slice(0, rows),
    disabledSubscriptions: disabled.slice(0, rows),
    quarantinedLanes: quarantined.slice(0, rows),
    mails: { queued: Math.min(counts.mails, counted), nextDueAt: counts.mailDueAt },
    truncated:
      heads.length > subscriptions ||
      Math.max(blocked.length, disabled.length, quarantined.length) > rows ||
      Math.max(counts.entries, counts.mails) > counted,
  });
}

function lagOf(heads: readonly HeadRow[], at: Date) {
  return { subscriptions: heads.length, lagS: secondsSince(oldestOf(heads), at) };
}

function oldestOf(heads: readonly HeadRow[]): Date | undefined {
  const sendable = heads.filter(({ isActive, isWaiting }) => isActive && !isWaiting);
  const [first] = sendable.toSorted((a, b) => a.recordedAt.getTime() - b.recordedAt.getTime());
  return first?.recordedAt;
}

function secondsSince(from: Date | undefined, at: Date): number {
  return from === undefined ? 0 : Math.max(0, at.getTime() - from.getTime()) / 1_000;
}

/**
 * Limits of one request for the list of backlogs. The query ranks up to `ranked` subscriptions with queued events,
 * counts up to `counted` entries of each, and searches the newest `attempts` delivery attempts of each subscription
 * on the page for an error.
 */
export const BACKLOG_LIMITS = { ranked: 10_000, counted: 1_000, attempts: 100 } as const;

const BACKLOG_ORDERS = ["depth", "age"] as const;

/** Matches the cursor of the list of backlogs: the rank of a subscription, a dot, and the id of the subscription. */
const isBacklogKey = (key: string): boolean => /^\d{1,15}\.[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(key);

export const backlogQuery = Type.Object({
  ...pageQuery(isBacklogKey),
  order: Type.Optional(
    literals(BACKLOG_ORDERS, {
      description: "Order by depth of the queue, or by age of its oldest event.",
    }),
  ),
});
export type BacklogOrder = (typeof BACKLOG_ORDERS)[number];

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
        tls_reason: orNull(Type.String()),
      }),
    ),
  },
  {
    title: "Backlog",
    examples: [
      {
        queued: 240,
        last_error: {
          at: "2026-06-01T12:00:00.000+00:00",
          status_code: 503,
          error_code: "http_status",
          tls_reason: null,
        },
      },
    ],
  },
);
type LastError = NonNullable<RowOf<typeof BacklogObject>["lastError"]>;
export type Backlog = Omit<RowOf<typeof BacklogObject>, "lastError"> &
  Omit<LastError, "at"> & { readonly rank: number; readonly errorAt: Date | null };

export function backlogKey({ rank, subscriptionId }: Backlog): string {
  return `${rank}.${subscriptionId}`;
}

/** Parses the cursor of a page of backlogs. `backlogQuery` has validated the cursor. */
export function readBacklogKey(key: string | undefined) {
  const [rank = "", subscriptionId = ""] = key?.split(".") ?? [];
  return key === undefined
    ? { afterRank: null, afterId: null }
    : { afterRank: Number(rank), afterId: subscriptionId };
}

export function showBacklog(one: Backlog): Static<typeof BacklogObject> {
  const { errorAt: at, statusCode, errorCode, tlsReason } = one;
  return shown(BacklogObject, {
    ...one,
    lastError: at && { at, statusCode, errorCode, tlsReason },
  });
}
