import type { Clock } from "../lib/clock.ts";
import {
  keepCredentials,
  keptCredentials,
  keptServer,
  withCredentialsLock,
  type Credentials,
} from "./credentials.ts";
import { EXIT, Failure, usage } from "./failure.ts";
import { objectOf, redeem, unreachable } from "./oauth.ts";
import type { Surroundings } from "./surroundings.ts";

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

interface Refusal {
  readonly message: string;
  readonly request_id: string;
  readonly errors: Readonly<Record<string, readonly string[]>>;
}

/** What the API refused, in its words. */
export async function refusalOf(response: Response): Promise<Failure> {
  const body = await objectOf<Refusal>(response);
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
