import type { Static } from "@sinclair/typebox";

import type { Clock } from "../lib/clock.ts";
import type { SecretAnswer, SubscriptionObject } from "../webhooks/model.ts";
import {
  type Credentials,
  saveCredentials,
  savedCredentials,
  savedServer,
  withCredentialsLock,
} from "./credentials.ts";
import { objectOf, redeem, unreachable } from "./oauth.ts";
import { EXIT, Failure, type CommandContext, ulid, usage } from "./context.ts";

const BASE_PATH = "/api/v1";
/** Remaining lifetime in ms below which an access token is renewed before a request. */
const RENEW_BEFORE_MS = 60_000;
const LOOPBACK_HOSTS = new Set(["127.0.0.1", "[::1]", "localhost"]);

export interface ApiRequest {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** A bearer token to send in place of the stored one. */
  readonly token?: string;
}

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

/** An API client for commands. It sends the user's token and renews the token when it expires. */
export class Server {
  readonly root: string;
  readonly #env: CommandContext["env"];
  readonly #clock: Clock;

  constructor({ env, clock }: Pick<CommandContext, "env" | "clock">, root: string) {
    this.root = root;
    this.#env = env;
    this.#clock = clock;
  }

  /**
   * Sends a request and returns the JSON of a successful response. Otherwise throws a failure with the message, field
   * errors and request id.
   */
  async ask<T>(path: string, request: ApiRequest = {}): Promise<T> {
    const response = await this.send(path, request);
    if (!response.ok) throw await failureOf(response);
    const answer: T = JSON.parse(await response.text());
    return answer;
  }

  /** Sends a request and returns any response. After a 401, renews the token and repeats the request once. */
  async send(path: string, request: ApiRequest = {}): Promise<Response> {
    const { token } = request;
    const response = await this.#fetch(path, request, token ?? (await this.#token(false)));
    const isFixed = token !== undefined || this.#env["REVIEWRELAY_TOKEN"] !== undefined;
    if (response.status !== 401 || isFixed) return response;
    await response.body?.cancel();
    return this.#fetch(path, request, await this.#token(true));
  }

  async #fetch(path: string, request: ApiRequest, token: string): Promise<Response> {
    const { method = "GET", body, headers = {}, signal } = request;
    try {
      return await fetch(this.root + BASE_PATH + path, {
        method,
        headers: {
          Authorization: `Bearer ${token}`,
          ...(body !== undefined && { "Content-Type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw unreachable(this.root, error);
    }
  }

  /**
   * Returns the token from the environment variable, else the stored token. The stored token is renewed if it has
   * expired or was rejected.
   */
  async #token(wasRejected: boolean): Promise<string> {
    const given = this.#env["REVIEWRELAY_TOKEN"];
    if (given !== undefined) return given;
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

interface HttpError {
  readonly message: string;
  readonly code: string;
  readonly request_id: string;
  readonly errors: Readonly<Record<string, readonly string[]>>;
}

/** Converts an error response of the API to a failure with the API's message. */
export async function failureOf(response: Response): Promise<Failure> {
  const body = await objectOf<HttpError>(response);
  const fields = Object.entries(body.errors ?? {}).map(
    ([field, texts]) => `\n  ${field} ${texts.join("; ")}`,
  );
  const text = body.message ?? `The server returned status ${response.status}.`;
  const id = body.request_id === undefined ? "" : ` (request ${body.request_id})`;
  // The exit status is not that of a temporary failure, which scripts repeat: the request may have been committed.
  const isUnknown = body.code === "outcome_unknown";
  const status = isUnknown ? EXIT.failed : statusFor(response.status);
  return new Failure(status, `${text}${fields.join("")}${id}`);
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
  const { data } = await server.ask<{ data: Subscription[] }>("/partner/webhooks");
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
    return server.ask<Subscription>(`/partner/webhooks/${ulid(named)}`);
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
  const path = `/partner/webhooks/${id}/secret`;
  const { secret } = await server.ask<Static<typeof SecretAnswer>>(path, { method: "POST" });
  return secret;
}
