import { type Deadline, type Expiring, startDeadline } from "../../src/lib/waiter.ts";
import { hasRoute } from "../../src/lib/network.ts";
import { isFromHostsFile } from "../../src/lib/name-resolver.ts";
import { type Resolution, resolveChecked, type WebhookTarget } from "../../src/lib/egress.ts";
import { type TlsReason, tlsReasonOf } from "../../src/outbox/tls-reason.ts";
import type { Connection, ConnectionPhase, ConnectionUser } from "./connection.ts";
import {
  awaited,
  closeCode,
  closeDetail,
  codeOf,
  DIRECT,
  type FailureCode,
  faultOf,
  isAboutAddress,
  isEstablished,
  lacksDescriptors,
  type OwnPart,
  THROUGH_PROXY,
} from "./failure.ts";
import { encodeRequest, ResponseParser } from "./message.ts";
import type { BodyRecord } from "./excerpt.ts";
import { ConnectionPool } from "./pool.ts";

/** The most addresses of one host name that are tried within the deadline (our choice). */
const MAX_ADDRESSES_TRIED = 4;
/**
 * The time in milliseconds after the start of a request in which the request is sent again if its reused connection
 * dies (contract 7.10).
 */
const RESEND_WITHIN_MS = 1_000;
/**
 * The time in milliseconds within which an ECONNREFUSED counts as a refusal by the receiver. If a router cannot reach
 * the receiver, or a neighbour does not answer, that takes seconds, and Bun 1.4.4 reports it as ECONNREFUSED, too.
 */
const REFUSED_WITHIN_MS = 900;
/** The status that some servers send, with `Connection: close`, before they close an idle connection. */
const REQUEST_TIMEOUT = 408;

type EndedExchange =
  | {
      readonly kind: "answered";
      readonly statusCode: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: BodyRecord;
    }
  /**
   * `tlsReason` is set with `tls` only. `fault`: the part of our own that may have failed instead of the receiver;
   * undefined if the receiver failed. `rememberedMs`: the monotonic time in ms at which the earlier look-up began whose
   * failure is remembered; undefined if this request made its own.
   */
  | {
      readonly kind: "failed";
      readonly errorCode: FailureCode;
      readonly detail: string;
      readonly tlsReason?: TlsReason | undefined;
      readonly fault?: OwnPart | undefined;
      readonly rememberedMs?: number | undefined;
    }
  /**
   * The request was not sent: our proxy is not available or refuses, or this machine lacks a file descriptor, port or
   * buffer.
   */
  | { readonly kind: "unsent"; readonly detail: string; readonly fault: OwnPart }
  /**
   * The request was aborted by us: `aborted` after its first byte was sent, `withheld` before that, for example because
   * `mayBegin` returned false.
   */
  | { readonly kind: "aborted" }
  | { readonly kind: "withheld" };

/**
 * The result of a request. `resent`: a reused connection died without a response, and the request was sent again on a
 * new one. `works`: the parts of our own that the request has shown to work.
 */
export type ExchangeResult = EndedExchange & {
  readonly resent: boolean;
  readonly works?: readonly OwnPart[];
};

/** Options and callbacks with which the sender controls one request. */
export interface PostControl {
  /** The partner that the request belongs to; each partner has a share of the simultaneous look-ups of names. */
  readonly partnerId?: number | undefined;
  /** Called with a function that aborts the request. */
  readonly abortable?: ((abort: () => void) => void) | undefined;
  /** Called with each connection that the request may use. */
  readonly connected?: ((connection: Connection) => void) | undefined;
  /** Called right before the first byte of each try. If it returns false, the request is not sent. */
  readonly mayBegin?: (() => boolean) | undefined;
}

/** HTTP/1.1 client over connections to checked addresses. The caller limits the number of simultaneous requests. */
export class HttpClient extends ConnectionPool {
  /** Sends a POST. Throws for headers that cannot be sent; every behaviour of the receiver is in the result. */
  post(
    target: WebhookTarget,
    { headers, body }: { headers: Readonly<Record<string, string>>; body: string | Uint8Array },
    control: PostControl = {},
  ): Promise<ExchangeResult> {
    const message = encodeRequest(target, headers, body);
    return new Exchange(this, { target, message }, control).run();
  }
}

/** One request and its response, over one connection, or over a second one after a reused connection died silently. */
class Exchange implements ConnectionUser, Expiring {
  readonly #client: HttpClient;
  readonly #target: WebhookTarget;
  /** The encoded head and body of the request. */
  readonly #message: ReturnType<typeof encodeRequest>;
  readonly #control: PostControl;
  readonly #startedMs = performance.now();
  #parser = new ResponseParser();
  #resolve: ((result: ExchangeResult) => void) | undefined;
  #connection: Connection | undefined;
  /** The deadline of the request up to the final response head; after that the deadline of the response body. */
  #deadline: Deadline | undefined;
  #addressDeadline: Deadline | undefined;
  #lookup: AbortController | undefined;
  #addresses: string[] = [];
  /** The address of the current connection. */
  #address = "";
  /**
   * True if the request runs on a reused connection. If such a connection dies, that may say nothing about the
   * receiver.
   */
  #isReused = false;
  #isAnswering = false;
  /** The number of times that the request was written. */
  #sent = 0;
  readonly #works: OwnPart[] = [];
  /** The addresses that refused the connection as fast as a receiver does. */
  readonly #refusing: string[] = [];
  #openedMs = 0;

  constructor(
    client: HttpClient,
    {
      target,
      message,
    }: { readonly target: WebhookTarget; readonly message: ReturnType<typeof encodeRequest> },
    control: PostControl,
  ) {
    this.#client = client;
    this.#target = target;
    this.#message = message;
    this.#control = control;
  }

  run(): Promise<ExchangeResult> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#control.abortable?.(() => this.#abort());
      this.#deadline = startDeadline(this.#client.settings.timeoutMs, this);
      const kept = this.#client.take(this.#target.origin);
      if (kept === undefined) return this.#connect();
      this.#isReused = true;
      kept.user = this;
      this.connectionReady(kept);
    });
  }

  /** Ends the request at its deadline. If the head has arrived, the response counts and only the body is cut. */
  expire(): void {
    if (this.#parser.head !== undefined) return this.#cutBody();
    const phase = this.#connection?.phase;
    const detail = `no ${awaited(phase)} before the deadline`;
    if (phase === "reaching") return this.#settle({ kind: "unsent", detail, fault: "proxy" });
    if (phase === "handshaking") this.#reached();
    if (isEstablished(phase)) return this.#fail("timeout", detail);
    void this.#failed("timeout", detail, phase === undefined ? "names" : "network");
  }

  /** Aborts the request for the sender. A response whose status is known still counts. */
  #abort(): void {
    if (this.#parser.head === undefined) this.#giveUp();
    else this.#cutBody();
  }

  connectionReady(connection: Connection): void {
    clearTimeout(this.#addressDeadline);
    this.#connection = connection;
    if (!this.#isReused) this.#reached();
    this.#control.connected?.(connection);
    if (this.#control.mayBegin?.() === false) return this.#giveUp();
    this.#sent += 1;
    for (const piece of this.#message) connection.write(piece);
  }

  connectionData(chunk: Buffer): void {
    const parser = this.#parser;
    const hadHead = parser.head !== undefined;
    this.#isAnswering = true;
    parser.feed(chunk);
    const { head } = parser;
    // A 408 that closes a reused connection was sent while the connection was idle, just before the request. It is no
    // response to the request, so the request is sent again.
    const isGoodbye = head?.statusCode === REQUEST_TIMEOUT && !head.keepAlive;
    if (isGoodbye && this.#mayResend()) return this.#replace();
    if (parser.state === "complete") return this.#answer();
    if (parser.state === "invalid") {
      if (head === undefined) this.#fail("protocol", parser.problem);
      else this.#cutBody();
    } else if (!hadHead && head !== undefined) {
      clearTimeout(this.#deadline);
      this.#deadline = startDeadline(this.#client.settings.bodyMs, this);
    }
  }

  connectionClosed(phase: ConnectionPhase, error: Error | undefined): void {
    this.#connection = undefined;
    if (this.#parser.head !== undefined) {
      if (error === undefined) this.#parser.end();
      else this.#parser.cut();
      return this.#answer();
    }
    if (isAboutAddress(phase, error)) {
      const isFast = performance.now() - this.#openedMs < REFUSED_WITHIN_MS;
      if (phase === "connecting" && isFast && codeOf(error) === "ECONNREFUSED")
        this.#refusing.push(this.#address);
      this.#blame();
      if (this.#addresses.length > 0) return this.#openNext();
    }
    if (this.#mayResend() && !this.#isAnswering) return this.#replace();
    void this.#closed(phase, error);
  }

  /** Ends the request because its connection has ended and no other address is tried. */
  async #closed(phase: ConnectionPhase, error: Error | undefined): Promise<void> {
    const detail = closeDetail(phase, error);
    if (phase === "handshaking") this.#reached();
    if (isEstablished(phase)) {
      const errorCode = closeCode(phase, error);
      const tlsReason = errorCode === "tls" ? tlsReasonOf(codeOf(error)) : undefined;
      return this.#settle({ kind: "failed", errorCode, detail, tlsReason });
    }
    // EADDRNOTAVAIL means a lack of ports, a fault of this machine, only if the machine has a route to the address.
    // Otherwise the machine has, for example, no IPv6.
    const isSource = phase === "connecting" && codeOf(error) === "EADDRNOTAVAIL";
    const isUnrouted = isSource && !(await hasRoute(this.#address));
    const fault = isUnrouted ? undefined : faultOf(phase, error);
    if (phase === "tunnelling") this.#works.push("machine", "proxy");
    if (fault !== undefined) return this.#settle({ kind: "unsent", detail, fault });
    if (phase === "tunnelling") this.#works.push("policy");
    void this.#failed("connect", detail, "network");
  }

  /** Notes that the connection reaches the receiver. */
  #reached(): void {
    this.#works.push(...(this.#client.settings.proxy === undefined ? DIRECT : THROUGH_PROXY));
  }

  /**
   * Ends the request as failed without a connection. Names `part` as a possible cause, unless this request was sent
   * before or has shown that the part works.
   */
  async #failed(
    errorCode: FailureCode,
    detail: string,
    part: OwnPart,
    rememberedMs?: number,
  ): Promise<void> {
    const routes = await Promise.all(this.#refusing.map(hasRoute));
    if (routes.includes(true)) this.#reached();
    const isTheirs = this.#sent > 0 || this.#works.includes(part);
    const fault = isTheirs ? undefined : part;
    this.#settle({ kind: "failed", errorCode, detail, fault, rememberedMs });
  }

  #blame(): void {
    this.#client.addresses.blame(this.#target.origin, this.#address);
  }

  /** Whether the request may be sent again if its reused connection has died (contract 7.10). */
  #mayResend(): boolean {
    if (!this.#isReused || this.#sent > 1) return false;
    return performance.now() - this.#startedMs < RESEND_WITHIN_MS;
  }

  /** Replaces a reused connection that has died by a new one. */
  #replace(): void {
    this.#connection?.destroy();
    this.#connection = undefined;
    this.#isReused = false;
    this.#isAnswering = false;
    this.#parser = new ResponseParser();
    this.#connect();
  }

  /**
   * Ends the request without a response of the receiver. The receiver may have got the request if its first byte was
   * sent.
   */
  #giveUp(): void {
    this.#settle({ kind: this.#sent === 0 ? "withheld" : "aborted" });
  }

  #connect(): void {
    const { host, isLiteral, origin } = this.#target;
    const { policy, lookup } = this.#client.settings;
    const { partnerId } = this.#control;
    const { signal } = (this.#lookup = new AbortController());
    resolveChecked(host, policy, { lookup, partnerId, signal })
      .then((resolution) => {
        if (this.#resolve === undefined) return;
        if (resolution.kind === "unresolved") return this.#unresolved(resolution);
        if (
          !isLiteral &&
          !(resolution.kind === "resolved" && isFromHostsFile(resolution.addresses))
        )
          this.#works.push("names");
        if (resolution.kind === "refused") return this.#fail("blocked_address", resolution.reason);
        const addresses = this.#client.addresses.inOrder(origin, resolution.addresses);
        this.#addresses = addresses.slice(0, MAX_ADDRESSES_TRIED);
        this.#openNext();
      })
      .catch((error: unknown) => this.#fail("connect", String(error)));
  }

  #unresolved(resolution: Resolution & { kind: "unresolved" }): void {
    const { reason: detail, isAnswered, rememberedMs } = resolution;
    if (lacksDescriptors()) return this.#settle({ kind: "unsent", detail, fault: "machine" });
    if (isAnswered) this.#works.push("names");
    void this.#failed("dns", detail, "names", rememberedMs);
  }

  /**
   * Tries the next address, with a time limit, so that an address that does not answer does not use up the time of the
   * others.
   */
  #openNext(): void {
    const address = this.#addresses.shift();
    if (address === undefined) return;
    this.#address = address;
    this.#openedMs = performance.now();
    clearTimeout(this.#addressDeadline);
    const connection = this.#client.open(address, this.#target, this);
    this.#connection = connection;
    if (this.#addresses.length === 0) return;
    const giveUp = () => {
      if (isEstablished(connection.phase)) return;
      connection.destroy();
      this.#blame();
      this.#openNext();
    };
    this.#addressDeadline = startDeadline(this.#client.settings.addressMs, { expire: giveUp });
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
      this.#client.release(connection, head.keptForMs);
    }
    const { statusCode, headers } = head;
    if (this.#isReused) this.#works.push("network");
    this.#settle({ kind: "answered", statusCode, headers, body });
  }

  #fail(errorCode: FailureCode, detail: string): void {
    this.#settle({ kind: "failed", errorCode, detail });
  }

  /** Resolves the request with its result. A connection that was not released before cannot take another request. */
  #settle(ended: EndedExchange): void {
    const resolve = this.#resolve;
    if (resolve === undefined) return;
    this.#resolve = undefined;
    clearTimeout(this.#deadline);
    clearTimeout(this.#addressDeadline);
    this.#lookup?.abort();
    this.#connection?.destroy();
    resolve({ ...ended, resent: this.#sent > 1, works: this.#works });
  }
}
