import {
  cancelDeadline,
  type Deadline,
  type Expiring,
  startDeadline,
} from "../../src/lib/deadline.ts";
import { type EgressPolicy, resolveChecked, type WebhookTarget } from "../../src/lib/egress.ts";
import { systemLookup, type Lookup } from "../../src/lib/name-resolver.ts";
import {
  awaited,
  closeCode,
  closeDetail,
  type Connection,
  type ConnectionPhase,
  type ConnectionUser,
  type FailureCode,
  isAboutAddress,
  lacksDescriptors,
} from "./connection.ts";
import { encodeRequest, ResponseParser } from "./message.ts";
import type { BodyRecord } from "./excerpt.ts";
import { ConnectionPool, type PoolOptions } from "./pool.ts";

/** How many addresses of one name are tried within the deadline (our choice). */
const MAX_ADDRESSES_TRIED = 4;
/** A kept connection that dies later than this after the start of a request has its request sent no second time (contract 7.10). */
const RESEND_WITHIN_MS = 1_000;
/** With `Connection: close`, what some servers say before they end a connection that idles. */
const REQUEST_TIMEOUT = 408;

interface Options extends PoolOptions {
  readonly lookup: Lookup;
  readonly timeoutMs: number;
  readonly bodyMs: number;
  readonly addressMs: number;
}

/** What a client does unless it is told otherwise. */
const DEFAULTS: Options = {
  lookup: systemLookup,
  // Contract 7.10: the limit of look-up, connection, TLS, request and response headers together.
  timeoutMs: 15_000,
  // Contract 7.5: what the body may take after that.
  bodyMs: 2_000,
  // Our choice: how long one address of several is waited for before the next is tried.
  addressMs: 3_000,
  // Contract 7.10: many receivers close at 5 s.
  idleMs: 4_000,
  // Our choice: addresses are checked when a connection is made, and one that is kept busy for ever would neither follow a
  // name that moved nor be checked again.
  maxConnectionAgeMs: 60_000,
  // Our choice: each is a descriptor, here and there.
  maxIdle: 1_024,
  ca: [],
  proxy: undefined,
};

export type HttpClientOptions = { readonly policy: EgressPolicy } & Partial<Options>;

type Ended =
  | {
      readonly kind: "answered";
      readonly statusCode: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: BodyRecord;
    }
  /** `reached`: the request left, so that whatever went wrong then is about the receiver. */
  | {
      readonly kind: "failed";
      readonly errorCode: FailureCode;
      readonly detail: string;
      readonly reached: boolean;
    }
  /** Our proxy is not there or refuses us, or this machine had no descriptor, port or buffer for it. */
  | { readonly kind: "unsent"; readonly detail: string }
  /** Broken off by ourselves: `withheld` before its first byte left, also where `mayBegin` refused it. */
  | { readonly kind: "aborted" | "withheld" };

/** `resent`: a kept connection died unanswered, and the request went out once more on a fresh one. */
export type ExchangeResult = Ended & { readonly resent: boolean };

/** What its owner has to say about a request. */
export interface Leave {
  /** The partner whose request it is: it has a share of the look-ups at once. */
  readonly partnerId?: number | undefined;
  /** Is given what breaks the request off. */
  readonly abortable?: ((breakOff: () => void) => void) | undefined;
  /** Asked each time that the request is about to leave, right before its first byte does. */
  readonly mayBegin?: (() => boolean) | undefined;
}

/** Speaks HTTP/1.1 over connections to checked addresses. The caller bounds how many requests run at once. */
export class HttpClient extends ConnectionPool {
  readonly settings: Options & HttpClientOptions;

  constructor(options: HttpClientOptions) {
    const settings = { ...DEFAULTS, ...options };
    super(settings);
    this.settings = settings;
  }

  /** Throws for headers that cannot be sent; whatever the receiver does is in the result. */
  post(
    target: WebhookTarget,
    { headers, body }: { headers: Readonly<Record<string, string>>; body: string | Uint8Array },
    leave: Leave = {},
  ): Promise<ExchangeResult> {
    const message = encodeRequest(target, headers, body);
    return new Exchange(this, { target, message }, leave).run();
  }
}

/** One request and its answer, over one connection or, after a silent death of a kept one, two. */
class Exchange implements ConnectionUser, Expiring {
  readonly #client: HttpClient;
  readonly #target: WebhookTarget;
  /** Head and body, as encoded. */
  readonly #message: string | Buffer;
  readonly #leave: Leave;
  readonly #startedMs = performance.now();
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

  constructor(
    client: HttpClient,
    { target, message }: { readonly target: WebhookTarget; readonly message: string | Buffer },
    leave: Leave,
  ) {
    this.#client = client;
    this.#target = target;
    this.#message = message;
    this.#leave = leave;
  }

  run(): Promise<ExchangeResult> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#leave.abortable?.(() => this.#abort());
      this.#deadline = startDeadline(this.#client.settings.timeoutMs, this);
      const kept = this.#client.take(this.#target.origin);
      if (kept === undefined) return this.#connect();
      this.#isReused = true;
      kept.user = this;
      this.connectionReady(kept);
    });
  }

  /** The deadline has come. If the head is here the answer counts, and only the reading stops. */
  expire(): void {
    if (this.#parser.head !== undefined) return this.#cutBody();
    const code = this.#connection?.isReachingProxy === true ? "ours" : "timeout";
    this.#fail(code, `no ${awaited(this.#connection)} before the deadline`);
  }

  /** The request is broken off. An answer that is already decided is not thrown away. */
  #abort(): void {
    if (this.#parser.head === undefined) this.#breakOff();
    else this.#cutBody();
  }

  connectionReady(connection: Connection): void {
    cancelDeadline(this.#addressDeadline);
    this.#connection = connection;
    if (this.#leave.mayBegin?.() === false) return this.#breakOff();
    this.#sent += 1;
    connection.write(this.#message);
  }

  connectionData(chunk: Buffer): void {
    const parser = this.#parser;
    const hadHead = parser.head !== undefined;
    this.#isAnswering = true;
    parser.feed(chunk);
    const { head } = parser;
    // It was said to a connection that idled, just when the request was sent: it answers nothing.
    const isGoodbye = head?.statusCode === REQUEST_TIMEOUT && !head.keepAlive;
    if (isGoodbye && this.#mayResend()) return this.#replace();
    if (parser.state === "complete") return this.#answer();
    if (parser.state === "invalid") {
      if (head === undefined) this.#fail("protocol", parser.problem);
      else this.#cutBody();
    } else if (!hadHead && head !== undefined) {
      cancelDeadline(this.#deadline);
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
      this.#blame();
      if (this.#addresses.length > 0) return this.#openNext();
    }
    if (this.#mayResend() && !this.#isAnswering) return this.#replace();
    this.#fail(closeCode(phase, error), closeDetail(phase, error));
  }

  #blame(): void {
    this.#client.addresses.blame(this.#target.origin, this.#address);
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
    const { host, origin } = this.#target;
    const { policy, lookup } = this.#client.settings;
    const { partnerId } = this.#leave;
    const { signal } = (this.#lookup = new AbortController());
    resolveChecked(host, policy, { lookup, partnerId, signal })
      .then((resolution) => {
        if (this.#resolve === undefined) return;
        if (resolution.kind === "unresolved")
          return this.#fail(lacksDescriptors() ? "ours" : "dns", resolution.reason);
        if (resolution.kind === "refused") return this.#fail("blocked_address", resolution.reason);
        const addresses = this.#client.addresses.inOrder(origin, resolution.addresses);
        this.#addresses = addresses.slice(0, MAX_ADDRESSES_TRIED);
        this.#openNext();
      })
      .catch((error: unknown) => this.#fail("connect", String(error)));
  }

  /** Tries the next address. One that does not answer must not use up the time of those behind it. */
  #openNext(): void {
    const address = this.#addresses.shift();
    if (address === undefined) return;
    this.#address = address;
    cancelDeadline(this.#addressDeadline);
    const connection = this.#client.open(address, this.#target, this);
    this.#connection = connection;
    if (this.#addresses.length === 0) return;
    const giveUp = () => {
      if (connection.phase !== "connecting" && connection.phase !== "tunnelling") return;
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
    this.#settle({ kind: "answered", statusCode, headers, body });
  }

  #fail(errorCode: FailureCode | "ours", detail: string): void {
    if (errorCode === "ours") this.#settle({ kind: "unsent", detail });
    else this.#settle({ kind: "failed", errorCode, detail, reached: this.#sent > 0 });
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
