import { Agent, request } from "node:http";
import { encodeTime } from "ulid";

import { isoInstant, parseInstant } from "../lib/clock.ts";
import { type Command, connect, type ParsedArgs, WEBHOOK } from "./command.ts";
import { followAttempts, type SentAttempt } from "./stream.ts";
import { chooseSubscription, secretOf } from "./server.ts";
import { EXIT, type CommandContext, ulid, usage } from "./context.ts";
import { AGO, instant } from "./instant.ts";
import { signaturesOf, type Verdict, verdictOf } from "./verify-command.ts";

/** Numbers of characters in the two parts of a ULID: the time, then the random part. */
const TIME_DIGITS = 10;
const RANDOM_DIGITS = 16;

export const listen: Command = {
  name: "listen",
  words: "[--forward-to PORT|URL]",
  summary: "show deliveries live, and forward them to this machine",
  more: `Every request to your endpoint arrives here as a copy, with the exact headers and body, and is posted to a port of this
machine, one after the other; no tunnel is needed. Only the endpoint's answer counts for the delivery: the port's answer
changes nothing. After a lost connection, listen resumes where it stopped. Ctrl-C ends it.`,
  flags: {
    ...WEBHOOK,
    "forward-to": { type: "string", help: "a port, or an http address of this machine" },
    verify: {
      type: "boolean",
      help: "check signatures with WEBHOOK_SECRET, or with the secret from the API (audited)",
    },
    since: { type: "string", help: `start with attempts since: ${AGO}` },
    after: { type: "string", help: "start after this attempt (the id that --json shows)" },
    count: { type: "string", help: "end after this many attempts" },
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
      `Deliveries: ${seen.copies}; not forwarded: ${seen.notForwarded}; without a valid signature: ${seen.notSigned}.`,
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
  readonly forwarded: Forwarded | null;
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
  const signature =
    secret === undefined ? "unchecked" : verdictOf(secret, body, signaturesOf(headers));
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
  if (sent.request_body === null) words.push("its exact bytes are no longer known");
  if (forwarded !== null)
    words.push(`→ ${forwarded.status ?? forwarded.error} in ${forwarded.durationMs} ms`);
  if (signature !== "unchecked") words.push(`signature ${signature}`);
  return words.join("  ");
}

const ANSWER_WITHIN_MS = 15_000;

interface Forwarded {
  /** The HTTP status of the answer; null if there was no answer. */
  readonly status: number | null;
  readonly durationMs: number;
  /** The reason why there was no answer; null if there was an answer. */
  readonly error: string | null;
}

/**
 * Parses the target of forwarding. Only a port or an address of this machine is accepted, so that a partner's events
 * are never sent to another host.
 */
function targetOf(text: string): URL {
  const given = /^\d{1,5}$/.test(text) ? `http://127.0.0.1:${text}/` : text;
  const target = URL.canParse(given) ? new URL(given) : undefined;
  const isHere = ["127.0.0.1", "[::1]", "localhost"].includes(target?.hostname ?? "");
  if (target?.protocol !== "http:" || !isHere)
    throw usage(`--forward-to ${text} is neither a port nor an http address of this machine.`);
  return target;
}

/**
 * Posts a copy of the request that the partner's endpoint received, with the same bytes and headers. A post times out
 * after 15 s, like a delivery of the dispatcher.
 */
class Forwarder {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #target: URL;
  readonly #nowMs: () => number;

  constructor(target: URL, nowMs: () => number) {
    this.#target = target;
    this.#nowMs = nowMs;
  }

  post(headers: NonNullable<SentAttempt["request_headers"]>, body: string): Promise<Forwarded> {
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
      sent.once("timeout", () => sent.destroy(new Error("no answer within 15 s")));
      sent.once("error", (error) => end(null, errorText(error)));
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Removes the Connection header from the copied headers, because it describes the original connection. */
function withoutConnection(headers: Readonly<Record<string, string | string[]>>) {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.toLowerCase() !== "connection"),
  );
}

function errorText(error: Error): string {
  return "code" in error && error.code === "ECONNREFUSED"
    ? "nothing listens on that port"
    : error.message;
}
