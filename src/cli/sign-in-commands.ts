import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { createServer, type Server as HttpServer } from "node:http";

import { type Command, connect, show } from "./command.ts";
import {
  type Credentials,
  credentialsFile,
  forgetCredentials,
  keepCredentials,
  keptCredentials,
} from "./credentials.ts";
import { COMMAND_CLIENT, redeem, revoke, unreachable } from "./oauth.ts";
import { EXIT, Failure, readAll, type Surroundings, usage } from "./surroundings.ts";

interface Identity {
  readonly user: { readonly email: string };
  readonly company: { readonly name: string };
}

export const login: Command = {
  name: "login",
  words: "",
  summary: "sign in by the browser, or with a token",
  more: `The browser asks for your password, and for your consent; the command gets a token for webhooks alone, renewed by
itself for thirty days. It is kept in the folder for settings, readable for you alone. On a machine without a
browser, open the address elsewhere and paste the one at which it ends. REVIEWRELAY_TOKEN needs no login.`,
  flags: {
    "with-token": { type: "boolean", help: "keep the token on standard input instead" },
    "no-browser": { type: "boolean", help: "only show the address" },
    "client-id": { type: "string", help: "a public client of your own, or REVIEWRELAY_CLIENT_ID" },
  },
  takes: [0, 0],
  async run(around, given) {
    const { env } = around;
    const server = connect(around, given);
    const clientId =
      given.text("client-id") ?? env["REVIEWRELAY_CLIENT_ID"] ?? COMMAND_CLIENT.clientId;
    const opensBrowser = !given.is("no-browser");
    const credentials = given.is("with-token")
      ? { accessToken: (await readAll(around.stdin)).toString().trim() }
      : await signIn(around, { server: server.root, clientId, opensBrowser });
    if (credentials.accessToken === "") throw usage("There is no token on standard input.");
    const identity = await server.ask<Identity>("/verify-token", {
      token: credentials.accessToken,
    });
    keepCredentials(env, server.root, credentials);
    const [{ email }, { name }] = [identity.user, identity.company];
    const file = credentialsFile(env);
    const result = { server: server.root, email, company: name, file };
    show(
      around,
      given,
      result,
      `Signed in at ${server.root} as ${email} of ${name}; kept in ${file}.`,
    );
    if (env["REVIEWRELAY_TOKEN"] !== undefined)
      around.say("REVIEWRELAY_TOKEN is set, and is used before what was kept.");
    return EXIT.ok;
  },
};

export const logout: Command = {
  name: "logout",
  words: "",
  summary: "end the sign-in and forget its token",
  flags: {},
  takes: [0, 0],
  async run(around, given) {
    const { root } = connect(around, given);
    const kept = keptCredentials(around.env, root);
    if (kept !== undefined) await revoke(root, kept);
    forgetCredentials(around.env, root);
    const text = kept === undefined ? `Nobody is signed in at ${root}.` : `Signed out at ${root}.`;
    show(around, given, { server: root, signed_out: kept !== undefined }, text);
    return EXIT.ok;
  },
};

const PATH = "/callback";
const WAIT_MS = 300_000;

interface LoginWish {
  readonly server: string;
  readonly clientId: string;
  readonly opensBrowser: boolean;
}

/**
 * The authorization code flow of an app on the user's machine (RFC 8252): the browser comes back to a port of ours. Where
 * the browser is on another machine, the address that it ends at may be pasted instead.
 */
async function signIn(around: Surroundings, wish: LoginWish): Promise<Credentials> {
  const { server, clientId } = wish;
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
    await refuseOtherIssuer(server);
    await refuseUnknownClient(address);
    around.say(`Sign in here:\n\n  ${address}\n`);
    around.say("If that browser is on another machine, paste the address at which it ends up.");
    if (wish.opensBrowser) openBrowser(address);
    const pasted = pastedAddress(around.stdin, redirectUri);
    const code = codeOf(await soon(around, [returned, pasted]), { server, state });
    return await redeem(around.clock, server, {
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

/** `returned` is where the browser comes back to. */
async function listen(): Promise<{ listener: HttpServer; returned: Promise<URL> }> {
  const listener = createServer();
  const returned = new Promise<URL>((resolve) => {
    listener.on("request", (request, response) => {
      const url = new URL(request.url ?? "/", "http://127.0.0.1");
      const isOurs = request.method === "GET" && url.pathname === PATH;
      response.writeHead(isOurs ? 200 : 404, { "Content-Type": "text/plain; charset=utf-8" });
      response.end(isOurs ? "Back to the terminal: this window may be closed.\n" : "");
      if (isOurs) resolve(url);
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return { listener, returned };
}

/** RFC 8414, 3.3: what a server says of itself counts for the address alone at which it says so. */
async function refuseOtherIssuer(server: string): Promise<void> {
  const response = await fetch(`${server}/.well-known/oauth-authorization-server`).catch(
    (error: unknown) => {
      throw unreachable(server, error);
    },
  );
  const { issuer }: Record<string, unknown> = Object(await response.json().catch(() => ({})));
  if (issuer === server) return;
  const remedy = typeof issuer === "string" ? `it calls itself ${issuer}: use that` : "look at it";
  throw new Failure(EXIT.failed, `${server} is not the address of a ReviewRelay; ${remedy}.`);
}

/** Without it the browser would show the refusal, and the command would wait. */
async function refuseUnknownClient(address: string): Promise<void> {
  const response = await fetch(address, { redirect: "manual" });
  await response.body?.cancel();
  if (response.status === 400)
    throw new Failure(
      EXIT.failed,
      "This server does not know the command as a client. Its operator runs `bun run setup` once; or make a public client " +
        "with the redirect URI http://127.0.0.1/callback on the dashboard, API Keys, and name it by --client-id.",
    );
}

function openBrowser(address: string): void {
  const programs: Readonly<Record<string, [string, ...string[]]>> = {
    darwin: ["open"],
    win32: ["rundll32", "url.dll,FileProtocolHandler"],
  };
  const [program, ...args] = programs[process.platform] ?? ["xdg-open"];
  // Where there is none, the address is on the screen.
  execFile(program, [...args, address], () => {});
}

/** The first line of the input that is the place to which the browser was sent; an input without one says nothing. */
async function pastedAddress(stdin: AsyncIterable<Uint8Array>, redirectUri: string): Promise<URL> {
  let text = "";
  for await (const chunk of stdin) {
    text += Buffer.from(chunk).toString();
    const line = text.split("\n").find((one) => one.trim().startsWith(redirectUri));
    if (line !== undefined) return new URL(line.trim());
  }
  return new Promise(() => {});
}

async function soon(
  { clock, signal }: Surroundings,
  arrivals: readonly Promise<URL>[],
): Promise<URL> {
  const done = new AbortController();
  const late = clock.sleep(WAIT_MS, AbortSignal.any([signal, done.signal])).then(() => {
    throw new Failure(EXIT.signedOut, "Nobody signed in.");
  });
  return Promise.race([...arrivals, late]).finally(() => done.abort());
}

/** RFC 9207: an answer of another server than the one that was asked is no answer. */
function codeOf(url: URL, { server, state }: { server: string; state: string }): string {
  const given = url.searchParams;
  if (given.get("state") !== state || given.get("iss") !== server)
    throw new Failure(EXIT.signedOut, "The answer is of another sign-in: try again.");
  const code = given.get("code");
  if (code === null)
    throw new Failure(
      EXIT.signedOut,
      `The sign-in was refused: ${given.get("error_description") ?? given.get("error") ?? "no code"}`,
    );
  return code;
}
