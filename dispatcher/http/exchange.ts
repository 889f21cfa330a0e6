import { cancelDeadline, startDeadline } from "../../src/lib/deadline.ts";
import type { Deadline, Expiring } from "../../src/lib/deadline.ts";
import { resolveChecked } from "../../src/lib/egress.ts";
import type { EgressPolicy, Lookup, Resolution, WebhookTarget } from "../../src/lib/egress.ts";
import type { Abortable, AbortWatch } from "./abort-watch.ts";
import type { BodyRecord } from "./body-record.ts";
import type { Connection, ConnectionPhase, ConnectionUser } from "./connection.ts";
import type { ConnectionPool } from "./pool.ts";
import type { HeadReader } from "./response-head.ts";
import { ResponseParser } from "./response-parser.ts";
import { ProxyRefusal } from "./tunnel.ts";

/** How many addresses of one name are tried within the deadline (our choice). */
const MAX_ADDRESSES_TRIED = 4;

/** How much of a failure's detail is kept (our choice): a receiver's certificate can put a long list of names into it. */
export const MAX_DETAIL_CHARS = 300;

export type TransportErrorCode =
  | "timeout"
  | "dns"
  | "blocked_address"
  /** The egress proxy, which is ours, is not there or refuses us. Where it does not reach the receiver, that is `connect`. */
  | "proxy"
  | "connect"
  | "tls"
  | "reset"
  | "protocol";

/** `resent`: a kept connection died unanswered, and the request went out once more on a fresh one. */
export type ExchangeResult = { resent: boolean } & (
  | {
      kind: "answered";
      statusCode: number;
      headers: Readonly<Record<string, string>>;
      body: BodyRecord;
    }
  | { kind: "failed"; errorCode: TransportErrorCode; detail: string }
  | { kind: "aborted" }
);

export interface ExchangeDeps {
  readonly pool: ConnectionPool;
  readonly aborts: AbortWatch;
  readonly policy: EgressPolicy;
  readonly lookup: Lookup;
  readonly timeoutMs: number;
  readonly bodyMs: number;
  readonly addressMs: number;
}

export interface WireRequest {
  readonly target: WebhookTarget;
  /** Head and body, as encoded. */
  readonly message: string | Buffer;
}

/** One request and its answer, over one connection or, after a silent death of a kept one, two. */
export class Exchange implements ConnectionUser, Expiring, Abortable {
  readonly #deps: ExchangeDeps;
  readonly #request: WireRequest;
  readonly #signal: AbortSignal | undefined;
  readonly #parser = new ResponseParser();
  #resolve: ((result: ExchangeResult) => void) | undefined;
  #connection: Connection | undefined;
  /** The deadline of everything up to the final head; after that, the deadline of the body. */
  #deadline: Deadline | undefined;
  #addressDeadline: Deadline | undefined;
  #addresses: string[] = [];
  #isReused = false;
  #isAnswering = false;
  #resent = false;

  constructor(deps: ExchangeDeps, request: WireRequest, signal: AbortSignal | undefined) {
    this.#deps = deps;
    this.#request = request;
    this.#signal = signal;
  }

  run(): Promise<ExchangeResult> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      if (this.#signal?.aborted) return this.abort();
      if (this.#signal !== undefined) this.#deps.aborts.add(this.#signal, this);
      this.#deadline = startDeadline(this.#deps.timeoutMs, this);
      const kept = this.#deps.pool.take(this.#request.target.origin);
      if (kept === undefined) return this.#connect();
      this.#isReused = true;
      kept.user = this;
      this.connectionReady(kept);
    });
  }

  /** The deadline has come. If the head is here the answer counts, and only the reading stops. */
  expire(): void {
    if (this.#parser.head !== undefined) return this.#cutBody();
    const code = this.#connection?.isReachingProxy === true ? "proxy" : "timeout";
    this.#fail(code, `no ${awaited(this.#connection)} before the deadline`);
  }

  /** The signal aborted, or the client was closed. An answer that is already decided is not thrown away. */
  abort(): void {
    if (this.#parser.head === undefined) this.#settle({ kind: "aborted", resent: this.#resent });
    else this.#cutBody();
  }

  connectionReady(connection: Connection): void {
    cancelDeadline(this.#addressDeadline);
    this.#connection = connection;
    connection.write(this.#request.message);
  }

  connectionData(chunk: Buffer, heads: HeadReader): void {
    const parser = this.#parser;
    const hadHead = parser.head !== undefined;
    this.#isAnswering = true;
    parser.feed(chunk, heads);
    if (parser.state === "complete") return this.#answer();
    if (parser.state === "invalid") {
      if (parser.head === undefined) this.#fail("protocol", parser.problem);
      else this.#cutBody();
    } else if (!hadHead && parser.head !== undefined) {
      cancelDeadline(this.#deadline);
      this.#deadline = startDeadline(this.#deps.bodyMs, this);
    }
  }

  connectionClosed(phase: ConnectionPhase, error: Error | undefined): void {
    this.#connection = undefined;
    if (this.#parser.head !== undefined) {
      if (error === undefined) this.#parser.end();
      else this.#parser.cut();
      return this.#answer();
    }
    if (this.#deps.pool.isClosed) return this.abort();
    if (this.#addresses.length > 0 && isAboutAddress(phase, error)) return this.#openNext();
    if (this.#isReused && !this.#isAnswering && !this.#resent) {
      this.#resent = true;
      return this.#connect();
    }
    this.#fail(closeCode(phase, error), closeDetail(phase, error));
  }

  #connect(): void {
    const { policy, lookup } = this.#deps;
    resolveChecked(this.#request.target.host, policy, { lookup })
      .then((resolution) => this.#onResolved(resolution))
      // A socket cannot even be made for a name that TLS refuses to send, for example.
      .catch((error: unknown) => this.#fail("connect", String(error)));
  }

  #onResolved(resolution: Resolution): void {
    if (this.#resolve === undefined) return;
    if (this.#deps.pool.isClosed) return this.abort();
    if (resolution.kind === "unresolved") return this.#fail("dns", resolution.reason);
    if (resolution.kind === "refused") return this.#fail("blocked_address", resolution.reason);
    this.#addresses = resolution.addresses.slice(0, MAX_ADDRESSES_TRIED);
    this.#openNext();
  }

  /** Tries the next address. One that does not answer must not use up the time of those behind it. */
  #openNext(): void {
    const address = this.#addresses.shift();
    if (address === undefined) return;
    cancelDeadline(this.#addressDeadline);
    const connection = this.#deps.pool.open(address, this.#request.target, this);
    this.#connection = connection;
    if (this.#addresses.length === 0) return;
    const giveUp = () => {
      if (connection.phase !== "connecting" && connection.phase !== "tunnelling") return;
      connection.destroy();
      this.#openNext();
    };
    this.#addressDeadline = startDeadline(this.#deps.addressMs, { expire: giveUp });
  }

  #cutBody(): void {
    this.#parser.cut();
    this.#answer();
  }

  #answer(): void {
    const { head, body, isReusable } = this.#parser;
    const connection = this.#connection;
    if (head === undefined) return;
    if (connection !== undefined && isReusable && connection.isDrained) {
      this.#connection = undefined;
      this.#deps.pool.release(connection);
    }
    const { statusCode, headers } = head;
    this.#settle({ kind: "answered", statusCode, headers, body, resent: this.#resent });
  }

  #fail(errorCode: TransportErrorCode, detail: string): void {
    this.#settle({ kind: "failed", errorCode, detail, resent: this.#resent });
  }

  /** A connection that was not released before this is not fit for another request. */
  #settle(result: ExchangeResult): void {
    const resolve = this.#resolve;
    if (resolve === undefined) return;
    this.#resolve = undefined;
    cancelDeadline(this.#deadline);
    cancelDeadline(this.#addressDeadline);
    if (this.#signal !== undefined) this.#deps.aborts.delete(this.#signal, this);
    this.#connection?.destroy();
    resolve(result);
  }
}

/** Whether the next address of the name may fare better. */
function isAboutAddress(phase: ConnectionPhase, error: Error | undefined): boolean {
  if (phase === "tunnelling") return error instanceof ProxyRefusal && error.isAboutAddress;
  return phase === "connecting";
}

function awaited(connection: Connection | undefined): string {
  if (connection === undefined) return "address";
  if (connection.phase === "tunnelling") return "tunnel through the proxy";
  if (connection.phase === "connecting") return "connection";
  return connection.phase === "handshaking" ? "TLS handshake" : "answer";
}

function closeCode(phase: ConnectionPhase, error: Error | undefined): TransportErrorCode {
  if (phase === "connecting" || isAboutAddress(phase, error)) return "connect";
  if (phase === "tunnelling") return "proxy";
  if (phase === "handshaking") return "tls";
  // TLS 1.3 reports a refused client only after the handshake.
  return codeOf(error)?.startsWith("ERR_SSL") === true ? "tls" : "reset";
}

/** What to say about an end. The code of an error says what a message such as "unable to verify" only hints at. */
function closeDetail(phase: ConnectionPhase, error: Error | undefined): string {
  if (error === undefined)
    return `the ${phase === "tunnelling" ? "proxy" : "receiver"} closed the connection`;
  const code = codeOf(error);
  const { message } = error;
  const text = code === undefined || message.includes(code) ? message : `${code}: ${message}`;
  return text.slice(0, MAX_DETAIL_CHARS).toWellFormed();
}

function codeOf(error: Error | undefined): string | undefined {
  return error !== undefined && "code" in error ? String(error.code) : undefined;
}
