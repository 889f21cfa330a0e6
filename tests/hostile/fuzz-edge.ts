import { connect } from "node:net";

import { Prng } from "../simulation/prng.ts";
import { inputAt, type Corpus } from "./mutate.ts";

const HOST = "Host: localhost\r\n";
const json = (path: string, body: string, more = "") =>
  `POST ${path} HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
const form = (path: string, body: string, more = "") =>
  `POST ${path} HTTP/1.1\r\n${HOST}Content-Type: application/x-www-form-urlencoded\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\n${HOST}${more}\r\n`;

/**
 * Requests to every kind of parser that needs no authentication. Every input in which a fuzz run found a bug is added
 * here.
 */
const CORPUS: Corpus = {
  seeds: [
    get("/healthz"),
    get("/dashboard/keys?code=x#y", "Accept-Encoding: br;q=0, *\r\n"),
    get("/dashboard/assets/x.js"),
    get("/docs/"),
    get(
      "/oauth/authorize?client_id=x&redirect_uri=https%3A%2F%2Fa%2Fcb&state=%ff",
      "Cookie: authorize=x; rr_sso=y\r\n",
    ),
    get("/oauth/authorize/sso?ticket=v1.x.y&code=z", "Cookie: authorize=x\r\n"),
    get("/api/v1/auth/sso/redirect?email=a%40b.example&return_to=https://a"),
    get(
      "/api/v1/auth/sso/callback/01JWNB9PR0ZV8X2D3F4G5H6J7K?state=x&code=y",
      "Cookie: rr_sso=x\r\n",
    ),
    get("/api/v1/auth/sso/exchange?code=x&code_verifier=y"),
    get("/api/v1/partner/webhooks?limit=1&cursor=x", "Authorization: Bearer a.b.c\r\n"),
    get(
      "/api/v1/verify-token",
      "Authorization: Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.e30.AA\r\n",
    ),
    json("/api/v1/login", '{"email":"a@b.example","rememberMe":[]}'),
    json(
      "/api/v1/login",
      '{"email":{"a":["\\ud83d","\\u0000"]},"password":1e9}',
      "X-Request-Id: a b\r\n",
    ),
    json("/api/v1/auth/discover", '{"email":"a@b@c","more":null}'),
    json("/api/v1/email-otp/verify", '{"email":"a@b.example","otp":"1","type":"x"}'),
    json(
      "/api/v1/providers/google/events",
      '{"events":[{"id":"x"}]}',
      "X-Provider-Signature: sha256=00\r\n",
    ),
    json(
      "/api/v1/partner/webhooks",
      '{"label":"x"}',
      "Authorization: Bearer a.b.c\r\nX-Forwarded-For: ::1, 10.0.0.1\r\n",
    ),
    form(
      "/oauth/token",
      "grant_type=refresh_token&refresh_token=x&client_id=%c3%a4",
      "Authorization: Basic eDp5\r\n",
    ),
    form("/oauth/introspect", "token=a.b.c&client_id=x&client_secret=y"),
    form("/oauth/revoke", "token=%00&client_id=x"),
    form("/oauth/authorize", "ticket=x&action=allow", "Origin: null\r\nCookie: authorize=x\r\n"),
    `POST /api/v1/login HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nA: b\r\n\r\n`,
    "OPTIONS /oauth/token HTTP/1.1\r\nHost: a, b\r\nExpect: 100-continue\r\n\r\n",
    "GET http://evil.example/healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
    `GET /api/v1/account/live HTTP/1.1\r\n${HOST}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
  ],
  tokens: [
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\t",
    " ",
    ":",
    ";",
    ",",
    "/",
    "..",
    "//",
    "?",
    "&",
    "=",
    "%",
    "%00",
    "%ff",
    "%2e",
    "#",
    "\xff",
    "\xc3\xa4",
    "[",
    "{",
    '"',
    "\\",
    "\\ud800",
    "\\u0000",
    '{"a":',
    "__proto__",
    "constructor",
    "9999999999999999999",
    "-1",
    "1e999",
    "null",
    "Host: a b\r\n",
    "Host: localhost\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "Connection: close\r\n",
    "Authorization: ",
    "Bearer ",
    "Basic ",
    "Cookie: ",
    "X-Forwarded-For: ",
    "Accept-Encoding: ",
    "HEAD ",
    "POST ",
    "HTTP/1.1",
    "HTTP/1.0",
    "\r\n\r\n",
    "0\r\n\r\n",
  ],
};

const WORKERS = 48;
/** The time without a response to a valid request after which the server counts as hung. */
const HANG_MS = 30_000;
const LOOK_EVERY = 2_000;

export interface EdgeReport {
  readonly sent: number;
  /** The count of each status; 0 counts connections without a response. */
  readonly statuses: Readonly<Record<number, number>>;
  /** The guarantee that ended the run early, with the input that broke it. */
  readonly broken?: { readonly input: string; readonly promise: string };
}

interface EdgeOptions {
  readonly inputs: number;
  readonly seed: number;
  /** The time after which a request is abandoned. Incomplete requests get no response. */
  readonly leaveMs: number;
}

/** Sends the seeds and mutations of them to a running API, and stops at the first 500 or as soon as the server no longer responds. */
export async function fuzzEdge(
  root: string,
  { inputs, seed, leaveMs }: EdgeOptions,
): Promise<EdgeReport> {
  const prng = new Prng(seed);
  const statuses: Record<number, number> = {};
  let broken: EdgeReport["broken"];
  let sent = 0;
  const work = async () => {
    while (sent < inputs && broken === undefined) {
      const input = inputAt(sent, CORPUS, prng);
      sent += 1;
      const found = await statusesAfter(root, input, leaveMs);
      for (const status of found) statuses[status] = (statuses[status] ?? 0) + 1;
      if (found.includes(500)) broken ??= { input, promise: "is no 500" };
      if (sent % LOOK_EVERY === 0 && !(await answers(root)))
        broken ??= { input, promise: "leaves a server that answers" };
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  if (!(await answers(root))) broken ??= { input: "", promise: "leaves a server that answers" };
  return { sent, statuses, ...(broken && { broken }) };
}

async function answers(root: string): Promise<boolean> {
  const answer = await fetch(`${root}/healthz`, { signal: AbortSignal.timeout(HANG_MS) }).catch(
    () => undefined,
  );
  return answer?.status === 200;
}

/** Sends one input, which may contain several requests, and answers the statuses of its responses. */
function statusesAfter(root: string, input: string, leaveMs: number): Promise<number[]> {
  const { hostname, port } = new URL(root);
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(port), hostname);
    const leave = () => {
      clearTimeout(timer);
      socket.destroy();
      const found = [...text.matchAll(/(?:^|\n|\})HTTP\/1\.1 (\d{3})/g)].map(([, status]) =>
        Number(status),
      );
      resolve(found.length === 0 ? [0] : found);
    };
    const timer = setTimeout(leave, leaveMs);
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      // The first final response suffices. Errors of later requests show in the log, which the tests check.
      if (/^HTTP\/1\.1 [2-5]\d\d/m.test(text)) leave();
    });
    socket.on("close", leave);
    socket.on("error", leave);
    socket.write(input, "latin1");
  });
}
