import { cancelDeadline, startDeadline } from "../../src/lib/deadline.ts";
import type { Deadline, Expiring } from "../../src/lib/deadline.ts";
import { resolveChecked } from "../../src/lib/egress.ts";
import type { EgressPolicy, Resolution, WebhookTarget } from "../../src/lib/egress.ts";
import type { Lookup } from "../../src/lib/name-resolver.ts";
import type { BodyRecord } from "./excerpt.ts";
import type { Connection, ConnectionPhase, ConnectionUser } from "./connection.ts";
import type { ConnectionPool } from "./pool.ts";
import {
  awaited,
  closeCode,
  closeDetail,
  isAboutAddress,
  isOurOwn,
  saysGoodbye,
  type TransportErrorCode,
} from "./ending.ts";
import type { HeadReader } from "./response-head.ts";
import { ResponseParser } from "./response-parser.ts";

/** How many addresses of one name are tried within the deadline (our choice). */
const MAX_ADDRESSES_TRIED = 4;

/** A kept connection that dies later than this after the start of a request has its request sent no second time (contract 7.10). */
const RESEND_WITHIN_MS = 1_000;
/** A connection idle for so long is listened to for a turn before it is written to: its receiver may have said goodbye. */
const LISTEN_AFTER_MS = 1_000;

type Ended =
  | {
      kind: "answered";
      statusCode: number;
      headers: Readonly<Record<string, string>>;
      body: BodyRecord;
    }
  /** `reached`: the request left, so that whatever went wrong then is about the receiver. */
  | { kind: "failed"; errorCode: TransportErrorCode; detail: string; reached: boolean }
  | { kind: "aborted" }
  /** Broken off, or refused by `mayBegin`, before its first byte left. */
  | { kind: "withheld" };

/** `resent`: a kept connection died unanswered, and the request went out once more on a fresh one. */
export type ExchangeResult = Ended & { resent: boolean };

/** What its owner has to say about a request. */
export interface Leave {
  /** The partner whose request it is: it has a share of the look-ups at once. */
  readonly partnerId?: number | undefined;
  /** Is given what breaks the request off. */
  readonly breakable?: ((breakOff: () => void) => void) | undefined;
  /** Asked each time that the request is about to leave, right before its first byte does. */
  readonly mayBegin?: (() => boolean) | undefined;
}

export interface ExchangeOptions {
  readonly lookup: Lookup;
  readonly timeoutMs: number;
  readonly bodyMs: number;
  readonly addressMs: number;
}

export interface ExchangeDeps extends ExchangeOptions {
  readonly pool: ConnectionPool;
  readonly policy: EgressPolicy;
}

interface WireRequest {
  readonly target: WebhookTarget;
  /** Head and body, as encoded. */
  readonly message: string | Buffer;
}

/** One request and its answer, over one connection or, after a silent death of a kept one, two. */
export class Exchange implements ConnectionUser, Expiring {
  readonly #deps: ExchangeDeps;
  readonly #request: WireRequest;
  readonly #leave: Leave;
  readonly #startedMs: number;
  #parser = new ResponseParser();
  #resolve: ((result: ExchangeResult) => void) | undefined;
  #connection: Connection | undefined;
  /** The deadline of everything up to the final head; after that, the deadline of the body. */
  #deadline: Deadline | undefined;
  #addressDeadline: Deadline | undefined;
  #lookup: AbortController | undefined;
  #addresses: string[] = [];
  /** The one that is being connected to. */
  #address = "";
  /** On a kept connection, so that its death may say nothing about the receiver. */
  #isReused = false;
  #isAnswering = false;
  /** How often the request was written. */
  #sent = 0;

  constructor(deps: ExchangeDeps, request: WireRequest, leave: Leave) {
    this.#deps = deps;
    this.#request = request;
    this.#leave = leave;
    this.#startedMs = performance.now();
  }

  run(): Promise<ExchangeResult> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#leave.breakable?.(() => this.#abort());
      this.#deadline = startDeadline(this.#deps.timeoutMs, this);
      const kept = this.#deps.pool.take(this.#request.target.origin);
      if (kept === undefined) return this.#connect();
      this.#isReused = true;
      kept.user = this;
      this.#connection = kept;
      if (this.#startedMs - kept.idleSinceMs < LISTEN_AFTER_MS) return this.connectionReady(kept);
      setImmediate(() => {
        if (this.#connection === kept) this.connectionReady(kept);
      });
    });
  }

  /** The deadline has come. If the head is here the answer counts, and only the reading stops. */
  expire(): void {
    if (this.#parser.head !== undefined) return this.#cutBody();
    const code = this.#connection?.isReachingProxy === true ? "proxy" : "timeout";
    this.#fail(code, `no ${awaited(this.#connection)} before the deadline`);
  }

  /** The request is broken off, or the client was closed. An answer that is already decided is not thrown away. */
  #abort(): void {
    if (this.#parser.head === undefined) this.#breakOff();
    else this.#cutBody();
  }

  connectionReady(connection: Connection): void {
    cancelDeadline(this.#addressDeadline);
    this.#connection = connection;
    if (this.#leave.mayBegin?.() === false) return this.#breakOff();
    this.#sent += 1;
    connection.write(this.#request.message);
  }

  connectionData(chunk: Buffer, heads: HeadReader): void {
    const parser = this.#parser;
    // It was said before anything was asked.
    if (this.#sent === 0) return this.#replace();
    const hadHead = parser.head !== undefined;
    this.#isAnswering = true;
    parser.feed(chunk, heads);
    if (this.#mayResend() && saysGoodbye(parser)) return this.#replace();
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
    if (this.#deps.pool.isClosed) return this.#abort();
    if (isAboutAddress(phase, error)) this.#blame(this.#address);
    if (this.#addresses.length > 0 && isAboutAddress(phase, error)) return this.#openNext();
    if (this.#sent === 0 && this.#isReused) return this.#replace();
    if (this.#mayResend() && !this.#isAnswering) return this.#replace();
    const code = isOurOwn(phase, error) ? "local" : closeCode(phase, error);
    this.#fail(code, closeDetail(phase, error));
  }

  #blame(address: string): void {
    this.#deps.pool.addresses.blame(this.#request.target.origin, address);
  }

  /** Whether the request may leave a second time, if the kept connection turns out to have been dead (contract 7.10). */
  #mayResend(): boolean {
    if (!this.#isReused || this.#sent > 1) return false;
    return performance.now() - this.#startedMs < RESEND_WITHIN_MS;
  }

  /** Goes on with a fresh connection in the place of a kept one that was of no use any more. */
  #replace(): void {
    this.#connection?.destroy();
    this.#connection = undefined;
    this.#isReused = false;
    this.#isAnswering = false;
    this.#parser = new ResponseParser();
    this.#connect();
  }

  /** Ends it on our own account: if its first byte has left, the receiver may have it. */
  #breakOff(): void {
    this.#settle({ kind: this.#sent === 0 ? "withheld" : "aborted" });
  }

  #connect(): void {
    const { policy, lookup } = this.#deps;
    const { partnerId } = this.#leave;
    const { signal } = (this.#lookup = new AbortController());
    resolveChecked(this.#request.target.host, policy, { lookup, partnerId, signal })
      .then((resolution) => this.#onResolved(resolution))
      // A socket cannot even be made for a name that TLS refuses to send, for example.
      .catch((error: unknown) => this.#fail("connect", String(error)));
  }

  #onResolved(resolution: Resolution): void {
    if (this.#resolve === undefined) return;
    this.#lookup = undefined;
    if (this.#deps.pool.isClosed) return this.#abort();
    if (resolution.kind === "unresolved")
      return this.#fail(isOurOwn("connecting") ? "local" : "dns", resolution.reason);
    if (resolution.kind === "refused") return this.#fail("blocked_address", resolution.reason);
    const { target } = this.#request;
    const addresses = this.#deps.pool.addresses.inOrder(target.origin, resolution.addresses);
    this.#addresses = addresses.slice(0, MAX_ADDRESSES_TRIED);
    this.#openNext();
  }

  /** Tries the next address. One that does not answer must not use up the time of those behind it. */
  #openNext(): void {
    const address = this.#addresses.shift();
    if (address === undefined) return;
    this.#address = address;
    cancelDeadline(this.#addressDeadline);
    const connection = this.#deps.pool.open(address, this.#request.target, this);
    this.#connection = connection;
    if (this.#addresses.length === 0) return;
    const giveUp = () => {
      if (connection.phase !== "connecting" && connection.phase !== "tunnelling") return;
      connection.destroy();
      this.#blame(address);
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
      connection.keptForMs = head.keptForMs;
      this.#deps.pool.release(connection);
    }
    const { statusCode, headers } = head;
    this.#settle({ kind: "answered", statusCode, headers, body });
  }

  #fail(errorCode: TransportErrorCode, detail: string): void {
    this.#settle({ kind: "failed", errorCode, detail, reached: this.#sent > 0 });
  }

  /** A connection that was not released before this is not fit for another request. */
  #settle(ended: Ended): void {
    const resolve = this.#resolve;
    if (resolve === undefined) return;
    this.#resolve = undefined;
    cancelDeadline(this.#deadline);
    cancelDeadline(this.#addressDeadline);
    this.#lookup?.abort();
    this.#connection?.destroy();
    resolve({ ...ended, resent: this.#sent > 1 });
  }
}
