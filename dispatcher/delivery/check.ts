import type { Db } from "../../db/client.ts";
import { addMs, type Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import type { SecretBox } from "../../src/lib/secrets.ts";
import {
  checkEndpoint,
  type CheckAnswer,
  type CheckRequest,
} from "../../src/outbox/endpoint-check.ts";
import type { HttpClient } from "../http/client.ts";
import type { Job } from "../maintenance/loop.ts";
import { openSubscription } from "../store/store.ts";
import * as queries from "./check-queries.ts";
import type { CheckEnd, OpenCheck } from "./check-queries.ts";
import { createDeliver, type PostResult } from "./deliver.ts";
import { hostOf, type Reach } from "./reach.ts";

interface CheckJobDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly box: Pick<SecretBox, "open">;
  /** The evidence whether our own parts of the way to receivers work. The deliveries share it. */
  readonly reach: Reach;
  /**
   * Makes a client for one check, which keeps no connection, so that no request is sent again. The TLS sessions of
   * deliveries are not used, because a resumed session does not show a new certificate.
   */
  readonly openClient: () => HttpClient;
  readonly newUlid: (ms: number) => string;
}

const LOOK_S = 5;
/** The most checks that run at the same time, of all partners (contract 6.23). */
export const CHECKS_AT_ONCE = 16;
/**
 * The time in ms after which a running check counts as lost. It exceeds the ten requests of a check, each with its
 * deadline of 15 s and 2 s for the body.
 */
const LOST_AFTER_MS = 300_000;

/** Makes the job that starts pending checks of endpoints (contract 6.23). The checks run while the next looks go on. */
export function checksJob(deps: CheckJobDeps, stop: AbortSignal): Job {
  const { db, clock } = deps;
  const running = new Set<Promise<void>>();
  return {
    name: "checks",
    paceS: LOOK_S,
    anyClock: true,
    async run() {
      const at = clock.now();
      const { lost, due } = sortChecks(await queries.openChecks(db), at);
      if (lost.length > 0) await queries.endLostChecks(db, lost, at);
      const started =
        due.length === 0 || stop.aborted ? [] : await queries.startChecks(db, due, at);
      for (const one of started) {
        const check = runCheck(deps, one, stop).finally(() => running.delete(check));
        running.add(check);
      }
      return { rows: started.length };
    },
    drain: () => Promise.all(running),
  };
}

/** Returns the ids of the running checks whose process has died, and of the pending ones that may start now. */
export function sortChecks(open: readonly Omit<OpenCheck, "subscriptionId">[], at: Date) {
  const isLost = ({ startedAt }: Pick<OpenCheck, "startedAt">) =>
    startedAt !== null && startedAt < addMs(at, -LOST_AFTER_MS);
  const lost = open.filter(isLost).map(({ id }) => id);
  const pending = open.filter(({ state }) => state === "pending").map(({ id }) => id);
  const free = CHECKS_AT_ONCE - (open.length - pending.length - lost.length);
  return { lost, due: pending.slice(0, Math.max(0, free)) };
}

const interrupted = (reason: NonNullable<CheckEnd["reason"]>) =>
  ({ state: "interrupted", reason, findings: null }) as const;

async function runCheck(
  deps: CheckJobDeps,
  { id, subscriptionId }: Pick<OpenCheck, "id" | "subscriptionId">,
  stop: AbortSignal,
): Promise<void> {
  const { db, clock, log } = deps;
  const client = deps.openClient();
  const run = new CheckRun(deps, client, { id, stop });
  try {
    const end = await run.end(subscriptionId);
    await queries.endCheck(db, id, { ...end, finishedAt: clock.now() });
  } catch (error) {
    // The check counts as lost after a while.
    log.warn("check.failed", { check_id: id, ...errorFields(error) });
  } finally {
    client.close();
  }
}

type Settings = Awaited<ReturnType<typeof queries.readChecked>>;

/** The requests of one check. */
class CheckRun {
  readonly #deps: CheckJobDeps;
  readonly #deliver: ReturnType<typeof createDeliver>;
  readonly #id: string;
  readonly #stop: AbortSignal;
  #settings: Settings;
  #reason: NonNullable<CheckEnd["reason"]> = "process_ended";
  /** Aborts the request under way. */
  #abort: () => void = () => {};

  constructor(
    deps: CheckJobDeps,
    client: HttpClient,
    { id, stop }: { readonly id: string; readonly stop: AbortSignal },
  ) {
    this.#deps = deps;
    this.#deliver = createDeliver({ clock: deps.clock, client });
    this.#id = id;
    this.#stop = stop;
  }

  /** Makes the requests, and returns the result of the check. */
  async end(subscriptionId: string): Promise<CheckEnd> {
    const { db, clock, log, box, newUlid } = this.#deps;
    this.#settings = await queries.readChecked(db, this.#id);
    if (this.#settings === undefined) return interrupted("subscription_changed");
    const boxes = { box, headersBox: box, log };
    const endpoint = openSubscription(boxes, subscriptionId, this.#settings);
    if (endpoint === undefined) return interrupted("secret_unreadable");
    const abort = () => this.#abort();
    this.#stop.addEventListener("abort", abort, { once: true });
    const send = (request: CheckRequest) => this.#send(request, endpoint.partnerId);
    const findings = await checkEndpoint(endpoint, {
      now: () => clock.now(),
      newUlid,
      send,
    }).finally(() => this.#stop.removeEventListener("abort", abort));
    if (findings === undefined) return interrupted(this.#reason);
    return { state: "done", reason: null, findings };
  }

  /** Sends one request, if the subscription is still the same. Returns undefined to end the check. */
  async #send(request: CheckRequest, partnerId: number): Promise<CheckAnswer | undefined> {
    const { db, clock, reach } = this.#deps;
    const settings = await queries.readChecked(db, this.#id);
    if (JSON.stringify(settings) !== JSON.stringify(this.#settings))
      return this.#interrupt("subscription_changed");
    let certificateEndsAt: Date | null = null;
    const startedMs = clock.monotonicMs();
    const result = await this.#deliver(request, {
      partnerId,
      connected: (connection) => (certificateEndsAt = connection.certificateEndsAt ?? null),
      abortable: (abort) => (this.#abort = abort),
      mayBegin: () => !this.#stop.aborted,
    });
    const endedMs = clock.monotonicMs();
    const made = { host: hostOf(request.url), partnerId, startedMs, endedMs };
    const judged = reach.attribute(result, made, this.#deps);
    if (judged.kind === "unsent") return this.#interrupt("own_failure");
    if (judged.kind === "aborted" || judged.kind === "withheld")
      return this.#interrupt("process_ended");
    return { ...answerOf(judged), durationMs: judged.durationMs, certificateEndsAt };
  }

  #interrupt(reason: NonNullable<CheckEnd["reason"]>): undefined {
    this.#reason = reason;
  }
}

function answerOf(result: Exclude<PostResult, { kind: "unsent" | "aborted" | "withheld" }>) {
  if (result.kind === "failed") {
    const { errorCode, tlsReason = null } = result;
    return { statusCode: null, errorCode, tlsReason };
  }
  return { statusCode: result.statusCode, errorCode: null, tlsReason: null };
}
