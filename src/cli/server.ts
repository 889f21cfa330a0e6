import type { Clock } from "../lib/clock.ts";
import {
  type Credentials,
  keepCredentials,
  keptCredentials,
  keptServer,
  withCredentialsLock,
} from "./credentials.ts";
import { objectOf, redeem, unreachable } from "./oauth.ts";
import { EXIT, Failure, type Surroundings, ulid, usage } from "./surroundings.ts";

const BASE_PATH = "/api/v1";
/** A token is renewed when it has less than this to live. */
const RENEW_BEFORE_MS = 60_000;
const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

export interface ApiRequest {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Instead of the caller's own. */
  readonly token?: string;
}

/** Where the command talks to: what is named, else the setting, else where it signed in last. */
export function serverOf(env: Surroundings["env"], named: string | undefined): string {
  const given = named ?? env["REVIEWRELAY_SERVER"] ?? keptServer(env);
  if (given === undefined)
    throw usage("Name the server: --server https://… or the variable REVIEWRELAY_SERVER.");
  if (!URL.canParse(given)) throw usage(`${given} is no address of a server.`);
  const { origin, protocol, hostname } = new URL(given);
  if (protocol !== "https:" && !(protocol === "http:" && LOOPBACK.has(hostname)))
    throw usage(`${given} is not https, so a token sent there could be read on its way.`);
  return origin;
}

/** The API with the caller's token. */
export class Server {
  readonly root: string;
  readonly #env: Surroundings["env"];
  readonly #clock: Clock;

  constructor({ env, clock }: Pick<Surroundings, "env" | "clock">, root: string) {
    this.root = root;
    this.#env = env;
    this.#clock = clock;
  }

  /** The JSON of a success, as the contract has it; a refusal is a failure with its words, its fields and the request's id. */
  async ask<T>(path: string, request: ApiRequest = {}): Promise<T> {
    const response = await this.send(path, request);
    if (!response.ok) throw await refusalOf(response);
    const answer: T = JSON.parse(await response.text());
    return answer;
  }

  /** The answer, whatever it is; a token that has just died is renewed once. */
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

  /** The variable's token, else the one of the sign-in, renewed if it has to be. */
  async #token(isRefused: boolean): Promise<string> {
    const given = this.#env["REVIEWRELAY_TOKEN"];
    if (given !== undefined) return given;
    const kept = keptCredentials(this.#env, this.root);
    if (kept === undefined)
      throw new Failure(
        EXIT.signedOut,
        `Sign in first: reviewrelay login --server ${this.root} (or set REVIEWRELAY_TOKEN).`,
      );
    const { accessToken, expiresAtMs = Infinity } = kept;
    const isOld = expiresAtMs - this.#clock.now().getTime() < RENEW_BEFORE_MS;
    if (kept.refreshToken === undefined || !(isOld || isRefused)) return accessToken;
    return this.#renew(kept);
  }

  /** Renews the token, unless another command has done so since `kept` was read. */
  #renew(kept: Credentials): Promise<string> {
    return withCredentialsLock(this.#env, this.#clock, async () => {
      const { refreshToken = "", clientId = "" } = kept;
      const now = keptCredentials(this.#env, this.root);
      if (now !== undefined && now.refreshToken !== refreshToken) return now.accessToken;
      const fresh = await redeem(this.#clock, this.root, {
        grant_type: "refresh_token",
        refresh_token: refreshToken,
        client_id: clientId,
      });
      keepCredentials(this.#env, this.root, fresh);
      return fresh.accessToken;
    });
  }
}

interface HttpError {
  readonly message: string;
  readonly request_id: string;
  readonly errors: Readonly<Record<string, readonly string[]>>;
}

/** What the API refused, in its words. */
export async function refusalOf(response: Response): Promise<Failure> {
  const body = await objectOf<HttpError>(response);
  const fields = Object.entries(body.errors ?? {}).map(
    ([field, texts]) => `\n  ${field} ${texts.join("; ")}`,
  );
  const text = body.message ?? `The server answered ${response.status}.`;
  const id = body.request_id === undefined ? "" : ` (request ${body.request_id})`;
  return new Failure(statusFor(response.status), `${text}${fields.join("")}${id}`);
}

/** What passes by itself is told apart from what does not. */
function statusFor(status: number): number {
  if (status === 401) return EXIT.signedOut;
  return status === 429 || status >= 500 ? EXIT.unavailable : EXIT.failed;
}

export interface Subscription {
  readonly id: string;
  readonly label: string;
  readonly webhook_url: string;
  readonly delivery_kind: string;
  readonly is_active: boolean;
}

export async function listSubscriptions(server: Server): Promise<Subscription[]> {
  const { data } = await server.ask<{ data: Subscription[] }>("/partner/webhooks");
  return data;
}

/** The one that is named, else the only one, else the immediate one of the two that a partner may have. */
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
      `There is no subscription yet: make one at ${server.root}/dashboard.`,
    );
  return chosen;
}

/** The current secret: the variable's, else the API's, which writes into the audit log that it was shown. */
export async function secretOf(
  env: Readonly<Record<string, string | undefined>>,
  server: Server,
  { id }: Pick<Subscription, "id">,
): Promise<string> {
  const given = env["WEBHOOK_SECRET"];
  if (given !== undefined) return given;
  const path = `/partner/webhooks/${id}/secret`;
  const { secret } = await server.ask<{ secret: string }>(path, { method: "POST" });
  return secret;
}
