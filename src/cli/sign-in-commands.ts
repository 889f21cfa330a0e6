import { connect, show, type Command } from "./command.ts";
import {
  credentialsFile,
  forgetCredentials,
  keepCredentials,
  keptCredentials,
} from "./credentials.ts";
import { EXIT, usage } from "./failure.ts";
import { signIn } from "./login.ts";
import { COMMAND_CLIENT, revoke } from "./oauth.ts";
import { readAll } from "./surroundings.ts";

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
