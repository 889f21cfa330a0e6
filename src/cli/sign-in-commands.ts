import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { createServer, type Server as HttpServer } from "node:http";

import type { VerifyTokenAnswer } from "../auth/model.ts";
import { fieldsOf } from "../lib/fields.ts";
import { type Command, connect, show } from "./command.ts";
import {
  type Credentials,
  credentialsFile,
  deleteCredentials,
  saveCredentials,
  savedCredentials,
} from "./credentials.ts";
import { COMMAND_CLIENT, redeem, revoke, unreachable } from "./oauth.ts";
import { EXIT, Failure, readAll, type CommandContext, usage } from "./context.ts";
import { Server } from "./server.ts";

export const login: Command = {
  name: "login",
  words: "",
  summary: "sign in through the browser, or with a token",
  more: `The browser asks for your password and your consent. The command receives a token for webhooks only, which is
renewed automatically for thirty days. It is stored in your settings folder, and only you can read it. If this machine
has no browser, open the address on another machine and paste the address of the page that it redirects to. With
REVIEWRELAY_TOKEN you do not need to sign in.`,
  flags: {
    "with-token": { type: "boolean", help: "read a token from standard input and store it" },
    "no-browser": { type: "boolean", help: "show the address and do not open a browser" },
    "client-id": { type: "string", help: "your own public client; default: REVIEWRELAY_CLIENT_ID" },
  },
  wordCount: [0, 0],
  async run(context, given) {
    const { env } = context;
    const server = connect(context, given);
    const clientId =
      given.text("client-id") ?? env["REVIEWRELAY_CLIENT_ID"] ?? COMMAND_CLIENT.clientId;
    const opensBrowser = !given.is("no-browser");
    const credentials = given.is("with-token")
      ? { accessToken: (await readAll(context.stdin)).toString().trim() }
      : await signIn(context, { server: server.root, clientId, opensBrowser });
    if (credentials.accessToken === "")
      throw usage("Standard input contains no token. Pipe the token into the command.");
    const signedIn = new Server(context, server.root, credentials.accessToken);
    const identity = await signedIn.ask<VerifyTokenAnswer>("GET /verify-token");
    saveCredentials(env, server.root, credentials);
    const [{ email }, { name }] = [identity.user, identity.company];
    const file = credentialsFile(env);
    const result = { server: server.root, email, company: name, file };
    show(
      context,
      given,
      result,
      `Signed in at ${server.root} as ${email} of ${name}; stored in ${file}.`,
    );
    if (env["REVIEWRELAY_TOKEN"] !== undefined)
      context.say("REVIEWRELAY_TOKEN is set and takes precedence over the stored token.");
    return EXIT.ok;
  },
};

export const logout: Command = {
  name: "logout",
  words: "",
  summary: "sign out and delete the stored token",
  flags: {},
  wordCount: [0, 0],
  async run(context, given) {
    const { root } = connect(context, given);
    const saved = savedCredentials(context.env, root);
    if (saved !== undefined) await revoke(root, saved);
    deleteCredentials(context.env, root);
    const text =
      saved === undefined ? `You are not signed in at ${root}.` : `Signed out at ${root}.`;
    show(context, given, { server: root, signed_out: saved !== undefined }, text);
    return EXIT.ok;
  },
};

const PATH = "/callback";
const WAIT_MS = 300_000;

interface LoginOptions {
  readonly server: string;
  readonly clientId: string;
  readonly opensBrowser: boolean;
}

/**
 * Runs the authorization code flow of a native app (RFC 8252): the browser is redirected to a local port. If the
 * browser runs on another machine, the user may paste the final address instead.
 */
async function signIn(context: CommandContext, options: LoginOptions): Promise<Credentials> {
  const { server, clientId } = options;
  const [verifier, state] = [
    randomBytes(32).toString("base64url"),
    randomBytes(16).toString("hex"),
  ];
  const { listener, returned } = await listen();
  const bound = listener.address();
  const port = typeof bound === "object" ? (bound?.port ?? 0) : 0;
  const redirectUri = `http://127.0.0.1:${port}${PATH}`;
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  const address = `${server}/oauth/authorize?${new URLSearchParams({
    response_type: "code",
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: COMMAND_CLIENT.scopes.join(" "),
    state,
    code_challenge: challenge,
    code_challenge_method: "S256",
  }).toString()}`;
  try {
    await assertIssuer(server);
    await assertKnownClient(address);
    context.say(`Sign in here:\n\n  ${address}\n`);
    context.say(
      "If that browser is on another machine, paste the address of the page that it redirects to.",
    );
    if (options.opensBrowser) openBrowser(address);
    const pasted = pastedAddress(context.stdin, redirectUri);
    const code = codeOf(await firstOf(context, [returned, pasted]), { server, state });
    return await redeem(context.clock, server, {
      grant_type: "authorization_code",
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
      client_id: clientId,
    });
  } finally {
    listener.closeAllConnections();
    listener.close();
  }
}

/** Starts a local HTTP server. `returned` resolves with the URL to which the browser was redirected. */
async function listen(): Promise<{ listener: HttpServer; returned: Promise<URL> }> {
  const listener = createServer();
  const returned = new Promise<URL>((resolve) => {
    listener.on("request", (request, response) => {
      const url = new URL(request.url ?? "/", "http://127.0.0.1");
      const isOurs = request.method === "GET" && url.pathname === PATH;
      response.writeHead(isOurs ? 200 : 404, { "Content-Type": "text/plain; charset=utf-8" });
      response.end(isOurs ? "Close this window and return to the terminal.\n" : "");
      if (isOurs) resolve(url);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return { listener, returned };
}

/**
 * Throws a failure unless the server's OAuth metadata contain the server itself as issuer. Metadata are valid only for
 * the URL at which they are published (RFC 8414, 3.3).
 */
async function assertIssuer(server: string): Promise<void> {
  const response = await fetch(`${server}/.well-known/oauth-authorization-server`).catch(
    (error: unknown) => {
      throw unreachable(server, error);
    },
  );
  const { issuer } = fieldsOf(await response.json().catch(() => ({})));
  if (issuer === server) return;
  const remedy =
    typeof issuer === "string" ? `its address is ${issuer}: use that` : "check the address";
  throw new Failure(
    EXIT.failed,
    `${server} is not the address of a ReviewRelay server; ${remedy}.`,
  );
}

/**
 * Throws a failure if the server does not know the program's OAuth client. Otherwise the browser would show an error
 * while the program waits.
 */
async function assertKnownClient(address: string): Promise<void> {
  const response = await fetch(address, { redirect: "manual" });
  await response.body?.cancel();
  if (response.status === 400)
    throw new Failure(
      EXIT.failed,
      "This server has no OAuth client for the command. Its operator can create it with `bun run setup`. Or create a public client " +
        "with the redirect URI http://127.0.0.1/callback on the dashboard under API Keys, and pass its id with --client-id.",
    );
}

function openBrowser(address: string): void {
  const programs: Readonly<Record<string, [string, ...string[]]>> = {
    darwin: ["open"],
    win32: ["rundll32", "url.dll,FileProtocolHandler"],
  };
  const [program, ...args] = programs[process.platform] ?? ["xdg-open"];
  // A browser that cannot be started is not an error: the user opens the printed URL.
  execFile(program, [...args, address], () => {});
}

/**
 * Resolves with the first line of standard input that begins with the redirect URI; never resolves if there is no
 * such line.
 */
async function pastedAddress(stdin: AsyncIterable<Uint8Array>, redirectUri: string): Promise<URL> {
  let text = "";
  for await (const chunk of stdin) {
    text += Buffer.from(chunk).toString();
    const line = text.split("\n").find((one) => one.trim().startsWith(redirectUri));
    if (line !== undefined) return new URL(line.trim());
  }
  return new Promise(() => {});
}

async function firstOf(
  { clock, signal }: CommandContext,
  arrivals: readonly Promise<URL>[],
): Promise<URL> {
  const done = new AbortController();
  const late = clock.sleep(WAIT_MS, AbortSignal.any([signal, done.signal])).then(() => {
    throw new Failure(
      EXIT.signedOut,
      "The sign-in was not completed. Run reviewrelay login again.",
    );
  });
  return Promise.race([...arrivals, late]).finally(() => done.abort());
}

/** Extracts the authorization code from the redirect. A response with another issuer is rejected (RFC 9207). */
function codeOf(url: URL, { server, state }: { server: string; state: string }): string {
  const given = url.searchParams;
  if (given.get("state") !== state || given.get("iss") !== server)
    throw new Failure(
      EXIT.signedOut,
      "The response belongs to another sign-in. Run reviewrelay login again.",
    );
  const code = given.get("code");
  if (code === null)
    throw new Failure(
      EXIT.signedOut,
      `The sign-in was rejected: ${given.get("error_description") ?? given.get("error") ?? "no code"}`,
    );
  return code;
}
