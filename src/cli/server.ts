import type { Static } from "@sinclair/typebox";

import type { Clock } from "../lib/clock.ts";
import { fieldsOf } from "../lib/fields.ts";
import {
  ApiError,
  type Operation,
  type Options,
  ReviewRelay,
} from "../sdk/typescript/src/index.ts";
import type { SecretAnswer, SubscriptionObject } from "../webhooks/model.ts";
import {
  type Credentials,
  saveCredentials,
  savedCredentials,
  savedServer,
  withCredentialsLock,
} from "./credentials.ts";
import { redeem, unreachable } from "./oauth.ts";
import { EXIT, Failure, type CommandContext, ulid, usage } from "./context.ts";

/** Time limit in seconds for a response. */
const TIMEOUT_S = 300;
/** Codes of connections that were not opened, so that no request was sent: those of Bun, then those of Node. */
const NOT_OPENED = new Set(
  ["ConnectionRefused", "FailedToOpenSocket"].concat("ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"),
);
/** Remaining lifetime in ms below which an access token is renewed before a request. */
const RENEW_BEFORE_MS = 60_000;
const LOOPBACK_HOSTS = new Set(["127.0.0.1", "[::1]", "localhost"]);

/**
 * Returns the origin of the API server: from the flag, else from the environment variable, else from the last sign-in.
 */
export function serverOf(env: CommandContext["env"], named: string | undefined): string {
  const given = named ?? env["REVIEWRELAY_SERVER"] ?? savedServer(env);
  if (given === undefined)
    throw usage("Set the server with --server https://… or the variable REVIEWRELAY_SERVER.");
  if (!URL.canParse(given))
    throw usage(
      `${given} is not the address of a server. Use an origin such as https://reviews.example.`,
    );
  const { origin, protocol, hostname } = new URL(given);
  if (protocol !== "https:" && !(protocol === "http:" && LOOPBACK_HOSTS.has(hostname)))
    throw usage(
      `${given} is not https, so others could read a token that is sent there. Use https.`,
    );
  return origin;
}

type Request = Options<Operation>;

/** An API client for commands. It sends the user's token and renews the token when it expires. */
export class Server {
  readonly root: string;
  readonly #env: CommandContext["env"];
  readonly #clock: Clock;
  readonly #relay: ReviewRelay;

  /** `token` is sent in place of the user's token. */
  constructor({ env, clock }: Pick<CommandContext, "env" | "clock">, root: string, token?: string) {
    this.root = root;
    this.#env = env;
    this.#clock = clock;
    const given = token ?? env["REVIEWRELAY_TOKEN"];
    this.#relay = new ReviewRelay({
      server: root,
      token: given ?? ((rejected) => this.#token(rejected !== undefined)),
      // The exit status tells scripts whether to repeat the command.
      retries: 0,
      timeoutS: TIMEOUT_S,
    });
  }

  /** Sends a request and returns the body of the response; throws a failure if the API rejects it. */
  async ask<T>(operation: Operation, request: Request = {}): Promise<T> {
    try {
      const answer: T = await this.#relay.request(operation, request);
      return answer;
    } catch (error) {
      throw this.#failureOf(error, operation);
    }
  }

  /** Opens a stream; throws a failure if the API rejects it. */
  async open(
    operation: Operation,
    request: Request & { readonly headers: Readonly<Record<string, string>> },
  ): Promise<Response> {
    try {
      return await this.#relay.open(operation, request);
    } catch (error) {
      throw this.#failureOf(error, operation);
    }
  }

  #failureOf(error: unknown, operation: Operation): Failure {
    if (error instanceof Failure) return error;
    if (error instanceof ApiError) return failureOf(error);
    const { code, cause } = fieldsOf(error);
    if (operation.startsWith("GET ") || NOT_OPENED.has(String(code ?? fieldsOf(cause)["code"])))
      return unreachable(this.root, error);
    const text = `The server at ${this.root} did not answer. It may have carried out the request: check before you repeat it.`;
    return new Failure(EXIT.failed, text, { cause: error });
  }

  /** Returns the stored token, which is renewed if it has expired or was rejected. */
  async #token(wasRejected: boolean): Promise<string> {
    const saved = savedCredentials(this.#env, this.root);
    if (saved === undefined)
      throw new Failure(
        EXIT.signedOut,
        `Sign in first: reviewrelay login --server ${this.root} (or set REVIEWRELAY_TOKEN).`,
      );
    const { accessToken, expiresAtMs = Infinity } = saved;
    const isOld = expiresAtMs - this.#clock.now().getTime() < RENEW_BEFORE_MS;
    if (saved.refreshToken === undefined || !(isOld || wasRejected)) return accessToken;
    return this.#renew(saved);
  }

  /** Renews the stored token, unless another command has renewed it since `saved` was read. */
  #renew(saved: Credentials): Promise<string> {
    return withCredentialsLock(this.#env, this.#clock, async () => {
      const { refreshToken = "", clientId = "" } = saved;
      const now = savedCredentials(this.#env, this.root);
      if (now !== undefined && now.refreshToken !== refreshToken) return now.accessToken;
      const fresh = await redeem(this.#clock, this.root, {
        grant_type: "refresh_token",
        refresh_token: refreshToken,
        client_id: clientId,
      });
      saveCredentials(this.#env, this.root, fresh);
      return fresh.accessToken;
    });
  }
}

/** Converts an error of the API to a failure with its message, field errors and request id. */
function failureOf(error: ApiError): Failure {
  const { message, code, errors, requestId, status } = error;
  const fields = Object.entries(errors).map(([field, texts]) => `\n  ${field} ${texts.join("; ")}`);
  const id = requestId === "" ? "" : ` (request ${requestId})`;
  // The exit status is not that of a temporary failure, which scripts repeat: the request may have been committed.
  const exit = code === "outcome_unknown" ? EXIT.failed : statusFor(status);
  return new Failure(exit, `${message}${fields.join("")}${id}`, { cause: error });
}

/**
 * Returns the exit status for an HTTP status. Temporary failures have an exit status of their own, so that scripts can
 * retry.
 */
function statusFor(status: number): number {
  if (status === 401) return EXIT.signedOut;
  return status === 429 || status >= 500 ? EXIT.unavailable : EXIT.failed;
}

type Subscription = Static<typeof SubscriptionObject>;

export async function listSubscriptions(server: Server): Promise<Subscription[]> {
  const { data } = await server.ask<{ data: Subscription[] }>("GET /partner/webhooks");
  return data;
}

/**
 * Returns the subscription that the flag selects. Without the flag, returns the partner's only subscription, or the
 * immediate one if there are two.
 */
export async function chooseSubscription(
  server: Server,
  named: string | undefined,
): Promise<Subscription> {
  if (named !== undefined) {
    return server.ask<Subscription>("GET /partner/webhooks/{id}", { path: { id: ulid(named) } });
  }
  const all = await listSubscriptions(server);
  const chosen = all.find((one) => one.delivery_kind === "immediate") ?? all[0];
  if (chosen === undefined)
    throw new Failure(
      EXIT.failed,
      `You have no subscription. Create one at ${server.root}/dashboard.`,
    );
  return chosen;
}

/**
 * Returns the current signing secret from the environment variable, else from the API. The API audits that the secret
 * was shown.
 */
export async function secretOf(
  env: Readonly<Record<string, string | undefined>>,
  server: Server,
  { id }: Pick<Subscription, "id">,
): Promise<string> {
  const given = env["WEBHOOK_SECRET"];
  if (given !== undefined) return given;
  const operation = "POST /partner/webhooks/{id}/secret";
  const { secret } = await server.ask<Static<typeof SecretAnswer>>(operation, { path: { id } });
  return secret;
}
