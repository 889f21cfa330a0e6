import { type ClientRequest, type IncomingMessage, request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { TLSSocket } from "node:tls";

import type { Static } from "@sinclair/typebox";
import { ulid as newUlid } from "ulid";

import { certificateEnd, checkServerIdentity } from "../lib/certificates.ts";
import { fieldsOf } from "../lib/fields.ts";
import { explainFinding, hasPassed } from "../outbox/check-findings.ts";
import {
  checkEndpoint,
  type CheckAnswer,
  type CheckedEndpoint,
  type CheckRequest,
} from "../outbox/endpoint-check.ts";
import type { OwnHeaders } from "../outbox/own-headers.ts";
import { tlsReasonOf } from "../outbox/tls-reason.ts";
import type { CheckReport } from "../webhooks/check-model.ts";
import { type Command, connect, type ParsedArgs, show, table, WEBHOOK } from "./command.ts";
import { EXIT, Failure, type CommandContext, usage } from "./context.ts";
import { chooseSubscription, secretOf } from "./server.ts";

/** The time limits in ms of a delivery: for the head of the response, and then for its body. */
const TIMEOUT_MS = 15_000;
const BODY_MS = 2_000;
const POLL_MS = 1_000;

export const check: Command = {
  name: "check",
  words: "[URL]",
  summary: "check how an endpoint treats valid and forged deliveries",
  more: `With a URL, this machine sends the requests, also to an address of your own network. They are signed with
WEBHOOK_SECRET or, if it is not set, with the secret from the API, which records this in the audit log. Without a URL,
the server checks the endpoint of your subscription. Every request has the header X-SVC-Test: 1.
From this machine, the requests carry the headers of WEBHOOK_HEADERS, such as {"X-Api-Key": "…"}, because the API shows
no value of the subscription's own headers.
Exit status 0: no fault, 1: at least one fault.`,
  flags: {
    ...WEBHOOK,
    "standard-webhooks": {
      type: "boolean",
      help: "send the headers of Standard Webhooks, too; with WEBHOOK_SECRET only",
    },
    minimal: { type: "boolean", help: "send minimal bodies; with WEBHOOK_SECRET only" },
  },
  wordCount: [0, 1],
  async run(context, given) {
    const [url] = given.words;
    const isSubscribed = url === undefined || context.env["WEBHOOK_SECRET"] === undefined;
    if (isSubscribed && (given.is("standard-webhooks") || given.is("minimal")))
      throw usage(
        "--standard-webhooks and --minimal need a URL and WEBHOOK_SECRET; without these, the subscription decides.",
      );
    const report =
      url === undefined ? await askServer(context, given) : await checkHere(context, given, url);
    show(context, given, report, textOf(report));
    return report.passed ? EXIT.ok : EXIT.failed;
  },
};

type Report = Pick<Static<typeof CheckReport>, "passed" | "findings">;

/** Lets the server check the endpoint of the subscription, and waits for the report. */
async function askServer(context: CommandContext, given: ParsedArgs): Promise<Report> {
  const server = connect(context, given);
  const { id } = await chooseSubscription(server, given.text("webhook"));
  const path = { id };
  const { check_id: checkId } = await server.ask<{ check_id: string }>(
    "POST /partner/webhooks/{id}/check",
    { path },
  );
  while (!context.signal.aborted) {
    const report = await server.ask<Static<typeof CheckReport>>(
      "GET /partner/webhooks/{id}/check/{checkId}",
      { path: { ...path, checkId } },
    );
    if (report.state === "done") return report;
    if (report.state === "interrupted")
      throw new Failure(EXIT.failed, `The check was interrupted (${report.reason}). Repeat it.`);
    await context.clock.sleep(POLL_MS, context.signal);
  }
  throw new Failure(EXIT.failed, `The check ${checkId} goes on without this command.`);
}

async function checkHere(context: CommandContext, given: ParsedArgs, url: string): Promise<Report> {
  if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ""))
    throw usage(`${url} is not an http or https URL.`);
  const endpoint = { ...(await settingsOf(context, given)), webhookUrl: url };
  const found = await checkEndpoint(endpoint, {
    now: () => context.clock.now(),
    newUlid,
    async send(request) {
      const answer = await send(context, request);
      return context.signal.aborted ? undefined : answer;
    },
  });
  if (found === undefined) throw new Failure(EXIT.failed, "The check was interrupted.");
  const findings = found.map(explainFinding).map((one) => ({
    code: one.code,
    severity: one.severity,
    passed: one.passed,
    status_code: one.statusCode,
    error_code: one.errorCode,
    tls_reason: one.tlsReason,
    duration_ms: one.durationMs,
    advice: one.advice,
  }));
  return { passed: hasPassed(found), findings };
}

/** Reads the subscription's own headers (contract 6.22) from the environment. */
function ownHeadersIn({ env }: Pick<CommandContext, "env">): OwnHeaders | null {
  const text = env["WEBHOOK_HEADERS"];
  if (text === undefined) return null;
  try {
    return Object.fromEntries(new Headers(JSON.parse(text)));
  } catch {
    // The error could contain a value.
    throw usage('WEBHOOK_HEADERS must be a JSON object of headers, such as {"X-Api-Key": "…"}.');
  }
}

/** Returns the settings by which the requests are composed. Only the server knows the id of the partner. */
async function settingsOf(
  context: CommandContext,
  given: ParsedArgs,
): Promise<Omit<CheckedEndpoint, "webhookUrl">> {
  const common = { partnerId: 0, previousSecret: null, headers: ownHeadersIn(context) };
  const secret = context.env["WEBHOOK_SECRET"];
  if (secret?.startsWith("whsec_"))
    throw usage(
      "WEBHOOK_SECRET is in the Standard Webhooks format. Set the plain secret, which is the base64-decoded text after whsec_.",
    );
  if (secret !== undefined)
    return {
      ...common,
      secret,
      standardWebhooks: given.is("standard-webhooks"),
      payloadMode: given.is("minimal") ? "minimal" : "full",
    };
  const server = connect(context, given);
  const subscription = await chooseSubscription(server, given.text("webhook"));
  return {
    ...common,
    secret: await secretOf(context.env, server, subscription),
    standardWebhooks: subscription.standard_webhooks,
    payloadMode: subscription.payload_mode,
  };
}

/** Sends one request over a connection of its own. Every behaviour of the receiver is a result and never throws. */
function send(
  { clock, signal }: Pick<CommandContext, "clock" | "signal">,
  { url, headers, body }: CheckRequest,
): Promise<CheckAnswer> {
  const beganMs = clock.monotonicMs();
  const isSecure = url.startsWith("https:");
  let isOpen = !isSecure;
  let certificateEndsAt: Date | null = null;
  return new Promise((resolve) => {
    const end = (result: Pick<CheckAnswer, "statusCode" | "errorCode" | "tlsReason">) => {
      const durationMs = Math.round(clock.monotonicMs() - beganMs);
      resolve({ ...result, durationMs, certificateEndsAt });
    };
    const options = { method: "POST", agent: false, signal, checkServerIdentity };
    const sent: ClientRequest = (isSecure ? secureRequest : plainRequest)(
      url,
      { ...options, headers: { ...headers, "Content-Length": Buffer.byteLength(body) } },
      (answer: IncomingMessage) => {
        end({ statusCode: answer.statusCode ?? 0, errorCode: null, tlsReason: null });
        answer.resume();
        void clock.sleep(BODY_MS).then(() => sent.destroy());
      },
    );
    sent.once("socket", (socket) =>
      socket.once("secureConnect", () => {
        isOpen = true;
        if (socket instanceof TLSSocket)
          certificateEndsAt = certificateEnd(socket.getPeerCertificate()) ?? null;
      }),
    );
    // This listener is never removed, because a later `error` event without one would end the process.
    sent.on("error", (error) => {
      const errorCode = failureOf(error, isOpen);
      const tlsReason = errorCode === "tls" ? tlsReasonOf(codeOf(error)) : null;
      end({ statusCode: null, errorCode, tlsReason });
    });
    void clock.sleep(TIMEOUT_MS).then(() => sent.destroy(new Error(TIMED_OUT)));
    sent.end(body);
  });
}

const TIMED_OUT = "no response within 15 s";
const CONNECT_CODE =
  /^E(?:CONNREFUSED|HOSTUNREACH|NETUNREACH|HOSTDOWN|NETDOWN|ADDRNOTAVAIL|TIMEDOUT)$|^(?:ConnectionRefused|FailedToOpenSocket)$/;

function codeOf(error: Error): string {
  const { code } = fieldsOf(error);
  return typeof code === "string" ? code : "";
}

/** Classifies the failure of a request by the codes of contract 7.13. Node and Bun name some failures differently. */
function failureOf(error: Error, isOpen: boolean): string {
  const code = codeOf(error);
  if (error.message === TIMED_OUT) return "timeout";
  if (/^(?:ENOTFOUND|EAI_|DNS)/.test(code)) return "dns";
  if (CONNECT_CODE.test(code)) return "connect";
  if (/^(?:HPE_|Malformed)/.test(code)) return "protocol";
  return isOpen ? "reset" : "tls";
}

function verdictOf({ passed, severity }: Report["findings"][number]): string {
  if (passed === null) return "not checked";
  if (passed) return "ok";
  return severity === "fault" ? "FAULT" : "warning";
}

function textOf({ findings }: Report): string {
  const rows = findings.map((one) => {
    const answer = one.status_code ?? one.tls_reason ?? one.error_code;
    const took = one.duration_ms === null ? "" : `${one.duration_ms} ms`;
    return [verdictOf(one), one.code, String(answer ?? ""), took];
  });
  const advice = findings.flatMap((one) =>
    one.advice === null ? [] : [`\n${one.code}: ${one.advice}`],
  );
  return [table(rows), ...advice].join("\n");
}
