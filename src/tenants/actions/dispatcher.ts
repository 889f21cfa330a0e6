import { messageOf, type EventSink } from "../../http/event-stream.ts";
import type { Page } from "../../http/list.ts";
import {
  type Backlog,
  type BacklogOrder,
  type DispatcherState,
  readBacklogKey,
  showDispatcher,
} from "../dispatcher-model.ts";
import { backlogsOf } from "../queries/dispatcher.ts";
import * as queries from "../queries/dispatcher.ts";
import type { AdminDeps } from "./deps.ts";

type ReadingDeps = Pick<AdminDeps, "db" | "clock">;

const POLL_MS = 2_000;

/** The state of the delivery process, from Postgres alone: it needs no dispatcher to answer (contract 10.4). */
export async function dispatcherState({ db, clock }: ReadingDeps): Promise<DispatcherState> {
  const at = clock.now();
  const [dispatchers, shards, heads, blocked, disabled, counts] = await Promise.all([
    queries.dispatchers(db),
    queries.shards(db),
    queries.heads(db),
    queries.blockedHeads(db),
    queries.disabledSubscriptions(db),
    queries.queueCounts(db),
  ]);
  return { at, dispatchers, shards, heads, blocked, disabled, counts };
}

/** Contract 10.4: who is behind. The queues move while one pages: a row may come twice, or not at all. */
export function listBacklogs(
  { db }: Pick<AdminDeps, "db">,
  order: BacklogOrder,
  { limit, after }: Page,
): Promise<Backlog[]> {
  const wanted = { byAge: order === "age", ...readBacklogKey(after), limit: limit + 1 };
  return backlogsOf(db, wanted);
}

/** Sends the state every two seconds, until the signal aborts or the caller may no longer read. */
export async function watchDispatcher(
  deps: ReadingDeps,
  { sink, mayRead }: { readonly sink: EventSink; readonly mayRead: () => Promise<boolean> },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && (await mayRead())) {
    sink.send(messageOf("dispatcher", showDispatcher(await dispatcherState(deps))));
    await deps.clock.sleep(POLL_MS, signal);
  }
}
