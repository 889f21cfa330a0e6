import type { Static } from "@sinclair/typebox";
import { Agent, request } from "node:http";
import { encodeTime, decodeTime } from "ulid";

import { isoInstant, parseInstant, type Clock } from "../lib/clock.ts";
import type { AttemptObject } from "../webhooks/delivery-model.ts";
import { type Command, connect, type ParsedArgs, WEBHOOK } from "./command.ts";
import { EXIT, type CommandContext, ulid, usage, Failure } from "./context.ts";
import { AGO, instant } from "./command.ts";
import { chooseSubscription, secretOf, type Server } from "./server.ts";
import { type Verdict, verdictOf } from "./verify-command.ts";

/** Numbers of characters in the two parts of a ULID: the time, then the random part. */
const TIME_DIGITS = 10;
const RANDOM_DIGITS = 16;

export const listen: Command = {
  name: "listen",
  words: "[--forward-to PORT|URL]",
  summary: "show deliveries live, and forward them to this machine",
  more: `Copies every request to your endpoint, with the exact headers and body, and posts the copies to a port of this
machine, one after the other. No tunnel is needed. Only the response of the endpoint counts for the delivery; the
response of the port changes nothing. After a lost connection, listen resumes where it stopped. Stop with Ctrl-C.`,
  flags: {
    ...WEBHOOK,
    "forward-to": { type: "string", help: "a port, or an http address of this machine" },
    verify: {
      type: "boolean",
      help: "verify signatures with WEBHOOK_SECRET, or with the secret from the API (recorded in the audit log)",
    },
    since: { type: "string", help: `start with attempts since: ${AGO}` },
    after: { type: "string", help: "start after this attempt (the id that --json shows)" },
    count: { type: "string", help: "stop after this number of attempts" },
  },
  wordCount: [0, 0],
  async run(context, given) {
    const plan = planOf(context, given);
    const server = connect(context, given);
    const subscription = await chooseSubscription(server, given.text("webhook"));
    const secret = given.is("verify")
      ? await secretOf(context.env, server, subscription)
      : undefined;
    context.say(`${subscription.label}: ${subscription.webhook_url} (${subscription.id})`);
    const deps = { server, clock: context.clock, signal: context.signal, report: context.say };
    const seen = { copies: 0, notForwarded: 0, notSigned: 0 };
    for await (const one of followAttempts(deps, subscription.id, plan.after)) {
      const copy = await take(one, { ...plan, secret });
      seen.copies += 1;
      if (copy.forwarded !== null && copy.forwarded.status === null) seen.notForwarded += 1;
      if (copy.signature !== "valid" && secret !== undefined) seen.notSigned += 1;
      context.out(given.is("json") ? JSON.stringify(asJson(copy)) : asLine(context, copy));
      if (seen.copies === plan.count) break;
    }
    plan.forwarder?.close();
    context.say(
      `Deliveries: ${seen.copies}; not forwarded: ${seen.notForwarded}; with an invalid signature: ${seen.notSigned}.`,
    );
    return seen.notSigned === 0 ? EXIT.ok : EXIT.failed;
  },
};

interface Plan {
  readonly forwarder: Forwarder | undefined;
  readonly after: string | undefined;
  readonly count: number | undefined;
}

interface Copy {
  readonly sent: SentAttempt;
  readonly signature: Verdict | "unchecked";
  readonly forwarded: ForwardResult | null;
}

function planOf(context: CommandContext, given: ParsedArgs): Plan {
  const { clock } = context;
  const target = given.text("forward-to");
  const forwarder =
    target === undefined ? undefined : new Forwarder(targetOf(target), () => clock.monotonicMs());
  const count = given.number("count", [1, 999_999_999]);
  return { forwarder, after: startOf(context, given), count };
}

/**
 * Returns the id of the attempt after which the stream starts. Attempt ids are ULIDs, so an instant can be converted
 * to an id.
 */
function startOf(context: CommandContext, given: ParsedArgs): string | undefined {
  const after = given.text("after");
  if (after !== undefined) return ulid(after);
  const at = parseInstant(instant(context, given, "since"));
  if (at === undefined) return undefined;
  return `${encodeTime(Math.max(0, at.getTime()), TIME_DIGITS)}${"0".repeat(RANDOM_DIGITS)}`;
}

async function take(
  sent: SentAttempt,
  { forwarder, secret }: Plan & { readonly secret: string | undefined },
): Promise<Copy> {
  const { request_headers: headers, request_body: body } = sent;
  if (headers === null || body === null) return { sent, signature: "unchecked", forwarded: null };
  const signature = secret === undefined ? "unchecked" : verdictOf(secret, body, headers);
  return { sent, signature, forwarded: (await forwarder?.post(headers, body)) ?? null };
}

function asJson({ sent, signature, forwarded }: Copy) {
  const { id, event, event_id, attempt } = sent;
  const answer = forwarded && {
    ...forwarded,
    duration_ms: forwarded.durationMs,
    durationMs: undefined,
  };
  return { id, event, event_id, attempt, signature, forwarded: answer };
}

function asLine({ clock }: CommandContext, { sent, signature, forwarded }: Copy): string {
  const time = isoInstant(clock.now()).slice(11, 19);
  const words = [`${time}  ${sent.event}  ${sent.event_id}  attempt ${sent.attempt}`];
  if (sent.request_body === null) words.push("not forwarded: its exact bytes are no longer stored");
  if (forwarded !== null)
    words.push(`→ ${forwarded.status ?? forwarded.error} in ${forwarded.durationMs} ms`);
  if (signature !== "unchecked") words.push(`signature ${signature}`);
  return words.join("  ");
}

const ANSWER_WITHIN_MS = 15_000;

interface ForwardResult {
  /** The HTTP status of the response; null if there was no response. */
  readonly status: number | null;
  readonly durationMs: number;
  /** The reason why there was no response; null if there was one. */
  readonly error: string | null;
}

/**
 * Parses the URL to which events are forwarded. It must be a port or an address of this machine, so that a partner's
 * events are never sent to another host.
 */
function targetOf(text: string): URL {
  const given = /^\d{1,5}$/.test(text) ? `http://127.0.0.1:${text}/` : text;
  const target = URL.canParse(given) ? new URL(given) : undefined;
  const isHere = ["127.0.0.1", "[::1]", "localhost"].includes(target?.hostname ?? "");
  if (target?.protocol !== "http:" || !isHere)
    throw usage(`--forward-to ${text} is not a port or an http address of this machine.`);
  return target;
}

/**
 * Posts a copy of the request that the partner's endpoint received, with the same bytes and headers. A POST times out
 * after 15 s, like an attempt of the dispatcher.
 */
class Forwarder {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #target: URL;
  readonly #nowMs: () => number;

  constructor(target: URL, nowMs: () => number) {
    this.#target = target;
    this.#nowMs = nowMs;
  }

  post(headers: NonNullable<SentAttempt["request_headers"]>, body: string): Promise<ForwardResult> {
    const beganMs = this.#nowMs();
    const { hostname, port, pathname, search } = this.#target;
    return new Promise((resolve) => {
      const end = (status: number | null, error: string | null) =>
        resolve({ status, error, durationMs: Math.round(this.#nowMs() - beganMs) });
      const sent = request(
        {
          method: "POST",
          hostname: hostname.replaceAll(/^\[|\]$/g, ""),
          port: port === "" ? 80 : Number(port),
          path: pathname + search,
          agent: this.#agent,
          // The `Host` header is not set, because the copied headers contain the Host of the endpoint.
          setHost: false,
          headers: withoutConnection(headers),
          timeout: ANSWER_WITHIN_MS,
        },
        (answer) => {
          answer.resume();
          answer.once("end", () => end(answer.statusCode ?? null, null));
          answer.once("error", (error) => end(null, error.message));
        },
      );
      sent.once("timeout", () => sent.destroy(new Error("no response within 15 s")));
      sent.once("error", (error) => end(null, errorText(error)));
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/**
 * Removes the Connection header from the copied headers, because it describes the connection of the original request.
 */
function withoutConnection(headers: Readonly<Record<string, string | string[]>>) {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.toLowerCase() !== "connection"),
  );
}

function errorText(error: Error): string {
  return "code" in error && error.code === "ECONNREFUSED"
    ? "no server listens on this port"
    : error.message;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** Time in ms without data after which a connection is considered lost. The server sends data every 2 s. */
const SILENCE_MS = 15_000;
/** Number of attempt ids that are stored to drop attempts that a resumed stream repeats. */
const REMEMBERED_IDS = 200_000;

type SentAttempt = Static<typeof AttemptObject>;

interface Deps {
  readonly server: Server;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Reports to the user that the connection to the server was opened or lost. */
  readonly report: (text: string) => void;
}

/**
 * Yields every delivery attempt of a subscription once, beginning now or after `after`. When the connection to the
 * server ends, the generator reconnects and resumes. It returns when the signal aborts, and throws a permanent failure.
 */
async function* followAttempts(
  deps: Deps,
  subscriptionId: string,
  after: string | undefined,
): AsyncGenerator<SentAttempt> {
  const { signal, clock, report } = deps;
  const taken = new Set<string>();
  let last = after;
  let beganMs = after === undefined ? undefined : decodeTime(after);
  let waitMs = FIRST_WAIT_MS;
  while (!signal.aborted) {
    try {
      for await (const { id, event, data } of messages(deps, subscriptionId, last)) {
        waitMs = FIRST_WAIT_MS;
        last = id ?? last;
        beganMs ??= last === undefined ? undefined : decodeTime(last);
        if (event === "subscription") report("Connected.");
        if (event !== "attempt" || id === undefined || taken.has(id)) continue;
        remember(taken, id);
        const attempt: SentAttempt = JSON.parse(data);
        if (endMs(attempt) >= (beganMs ?? 0)) yield attempt;
      }
    } catch (error) {
      if (error instanceof Failure && !isTransient(error)) throw error;
    }
    if (signal.aborted) return;
    report(`The connection closed. Reconnecting in ${waitMs / 1_000} s.`);
    await clock.sleep(waitMs, signal);
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }
}

/**
 * Returns the time in ms at which a delivery attempt ended. The stream may begin up to 30 s before the requested start,
 * so the caller drops attempts that ended before that start.
 */
function endMs({ started_at, duration_ms }: SentAttempt): number {
  return (parseInstant(started_at)?.getTime() ?? Infinity) + duration_ms;
}

/** Returns whether the failure is temporary: the server is starting, stopping or overloaded. */
function isTransient({ status }: Failure): boolean {
  return status === EXIT.unavailable;
}

/** Adds an attempt id to the set and drops the oldest id at the limit; a set keeps insertion order. */
function remember(taken: Set<string>, id: string): void {
  taken.add(id);
  if (taken.size <= REMEMBERED_IDS) return;
  const [oldest = ""] = taken;
  taken.delete(oldest);
}

interface Message {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

async function* messages(
  deps: Deps,
  subscriptionId: string,
  after: string | undefined,
): AsyncGenerator<Message> {
  const silence = new AbortController();
  const response = await deps.server.open("GET /partner/webhooks/{id}/stream", {
    path: { id: subscriptionId },
    query: { include: "body" },
    headers: {
      Accept: "text/event-stream",
      ...(after !== undefined && { "Last-Event-ID": after }),
    },
    signal: AbortSignal.any([deps.signal, silence.signal]),
  });
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ""; ;) {
      const { done, value } = await beforeSilence(deps.clock, silence, () => reader.read());
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      yield* parts.map(messageOf);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function beforeSilence<T>(
  clock: Clock,
  silence: AbortController,
  read: () => Promise<T>,
): Promise<T> {
  const received = new AbortController();
  void clock.sleep(SILENCE_MS, received.signal).then(() => {
    if (!received.signal.aborted) silence.abort();
  });
  return read().finally(() => received.abort());
}

/** Parses one message of the event stream. The server writes one line of data per message. */
function messageOf(part: string): Message {
  const field = (name: string) =>
    part
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  return { event: field("event") ?? "", data: field("data") ?? "", id: field("id") };
}
