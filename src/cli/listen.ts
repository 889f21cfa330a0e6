import { Agent, request } from "node:http";
import { encodeTime } from "ulid";

import { isoInstant, parseInstant } from "../lib/clock.ts";
import { type Command, connect, type Given, WEBHOOK } from "./command.ts";
import { followAttempts, type SentAttempt } from "./stream.ts";
import { chooseSubscription, secretOf } from "./server.ts";
import { EXIT, type Surroundings, ulid, usage } from "./surroundings.ts";
import { AGO, instant } from "./instant.ts";
import { signaturesOf, type Verdict, verdictOf } from "./verify-command.ts";

/** Of a ULID. */
const TIME_DIGITS = 10;
const RANDOM_DIGITS = 16;

export const listen: Command = {
  name: "listen",
  words: "[--forward-to PORT|URL]",
  summary: "show deliveries as they happen, and repeat them to this machine",
  more: `What your endpoint is sent comes here as a copy, with the exact headers and body, and is posted to a port of this
machine, one after the other: no tunnel is needed. What the port answers settles nothing: only the endpoint's answer
counts, and whatever it is, the copy comes. After a lost connection it goes on where it was. Ctrl-C ends it.`,
  flags: {
    ...WEBHOOK,
    "forward-to": { type: "string", help: "a port, or an http address of this machine" },
    verify: {
      type: "boolean",
      help: "check signatures; with WEBHOOK_SECRET, else the API is asked, which is audited",
    },
    since: { type: "string", help: `begin with what began since: ${AGO}` },
    after: { type: "string", help: "begin after this attempt (the id that --json shows)" },
    count: { type: "string", help: "end after so many" },
  },
  takes: [0, 0],
  async run(around, given) {
    const plan = planOf(around, given);
    const server = connect(around, given);
    const subscription = await chooseSubscription(server, given.text("webhook"));
    const secret = given.is("verify")
      ? await secretOf(around.env, server, subscription)
      : undefined;
    around.say(`${subscription.label}: ${subscription.webhook_url} (${subscription.id})`);
    const deps = { server, clock: around.clock, signal: around.signal, tell: around.say };
    const seen = { copies: 0, notForwarded: 0, notSigned: 0 };
    for await (const one of followAttempts(deps, subscription.id, plan.after)) {
      const copy = await take(one, { ...plan, secret });
      seen.copies += 1;
      if (copy.forwarded !== null && copy.forwarded.status === null) seen.notForwarded += 1;
      if (copy.signature !== "valid" && secret !== undefined) seen.notSigned += 1;
      around.out(given.is("json") ? JSON.stringify(asJson(copy)) : asLine(around, copy));
      if (seen.copies === plan.count) break;
    }
    plan.forwarder?.close();
    around.say(
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

function planOf(around: Surroundings, given: Given): Plan {
  const { clock } = around;
  const target = given.text("forward-to");
  const forwarder =
    target === undefined ? undefined : new Forwarder(targetOf(target), () => clock.monotonicMs());
  const count = given.number("count", [1, 999_999_999]);
  return { forwarder, after: beginningOf(around, given), count };
}

/** An attempt's id begins with its time, so a time is a place among them. */
function beginningOf(around: Surroundings, given: Given): string | undefined {
  const after = given.text("after");
  if (after !== undefined) return ulid(after);
  const at = parseInstant(instant(around, given, "since"));
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

function asLine({ clock }: Surroundings, { sent, signature, forwarded }: Copy): string {
  const time = isoInstant(clock.now()).slice(11, 19);
  const words = [`${time}  ${sent.event}  ${sent.event_id}  attempt ${sent.attempt}`];
  if (sent.request_body === null) words.push("its bytes cannot be proved any more");
  if (forwarded !== null)
    words.push(`→ ${forwarded.status ?? forwarded.error} in ${forwarded.durationMs} ms`);
  if (signature !== "unchecked") words.push(`signature ${signature}`);
  return words.join("  ");
}

const ANSWER_WITHIN_MS = 15_000;

interface Forwarded {
  /** Null without an answer. */
  readonly status: number | null;
  readonly durationMs: number;
  /** Why there is no answer. */
  readonly error: string | null;
}

/** A port or an address of this machine's: nobody else is sent a partner's events. */
function targetOf(text: string): URL {
  const given = /^\d{1,5}$/.test(text) ? `http://127.0.0.1:${text}/` : text;
  const target = URL.canParse(given) ? new URL(given) : undefined;
  const isHere = ["127.0.0.1", "[::1]", "localhost"].includes(target?.hostname ?? "");
  if (target?.protocol !== "http:" || !isHere)
    throw usage(`--forward-to ${text} is neither a port nor an http address of this machine.`);
  return target;
}

/** Posts what the endpoint was sent, byte for byte and header for header, as the product does: within 15 s. */
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
          // As they were, the name of the endpoint's host included.
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
      sent.once("error", (error) => end(null, wordsOf(error)));
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** What belongs to the connection is ours to say. */
function withoutConnection(headers: Readonly<Record<string, string | string[]>>) {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.toLowerCase() !== "connection"),
  );
}

function wordsOf(error: Error): string {
  return "code" in error && error.code === "ECONNREFUSED" ? "nobody listens there" : error.message;
}
