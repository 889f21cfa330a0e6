import { closeSync, openSync } from "node:fs";

import { type Deadline, type Expiring, startDeadline } from "../../src/lib/waiter.ts";
import { resolveChecked, type WebhookTarget } from "../../src/lib/egress.ts";
import {
  type Connection,
  type ConnectionPhase,
  type ConnectionUser,
  ProxyRefusal,
} from "./connection.ts";
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
/** The status that some servers send, with `Connection: close`, before they close an idle connection. */
const REQUEST_TIMEOUT = 408;

type Ended =
  | {
      readonly kind: "answered";
      readonly statusCode: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: BodyRecord;
    }
  /** `reached`: the request was sent, so the failure is about the receiver. */
  | {
      readonly kind: "failed";
      readonly errorCode: FailureCode;
      readonly detail: string;
      readonly reached: boolean;
    }
  /**
   * The request was not sent: our proxy is not available or rejects us, or this machine lacks a file descriptor, port
   * or buffer.
   */
  | { readonly kind: "unsent"; readonly detail: string }
  /**
   * The client aborted the request. `withheld`: before its first byte, for example because `mayBegin` returned false.
   */
  | { readonly kind: "aborted" | "withheld" };

/**
 * The result of a request. `resent`: a reused connection died without a response, and the request was sent again on a
 * new one.
 */
export type ExchangeResult = Ended & { readonly resent: boolean };

/** Options and callbacks with which the sender controls one request. */
export interface PostControl {
  /** The partner that the request belongs to; each partner has a share of the simultaneous look-ups of names. */
  readonly partnerId?: number | undefined;
  /** Called with a function that aborts the request. */
  readonly abortable?: ((abort: () => void) => void) | undefined;
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
  readonly #message: string | Buffer;
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

  constructor(
    client: HttpClient,
    { target, message }: { readonly target: WebhookTarget; readonly message: string | Buffer },
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
    const code = this.#connection?.isReachingProxy === true ? "ours" : "timeout";
    this.#fail(code, `no ${awaited(this.#connection)} before the deadline`);
  }

  /** Aborts the request for the sender. A response whose status is known still counts. */
  #abort(): void {
    if (this.#parser.head === undefined) this.#giveUp();
    else this.#cutBody();
  }

  connectionReady(connection: Connection): void {
    clearTimeout(this.#addressDeadline);
    this.#connection = connection;
    if (this.#control.mayBegin?.() === false) return this.#giveUp();
    this.#sent += 1;
    connection.write(this.#message);
  }

  connectionData(chunk: Buffer): void {
    const parser = this.#parser;
    const hadHead = parser.head !== undefined;
    this.#isAnswering = true;
    parser.feed(chunk);
    const { head } = parser;
    // The server sent this response to an idle connection just before the request, so it is no response to the
    // request.
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
      this.#blame();
      if (this.#addresses.length > 0) return this.#openNext();
    }
    if (this.#mayResend() && !this.#isAnswering) return this.#replace();
    this.#fail(closeCode(phase, error), closeDetail(phase, error));
  }

  #blame(): void {
    this.#client.addresses.blame(this.#target.origin, this.#address);
  }

  /** Whether the request may be sent again if the kept connection turns out to be dead (contract 7.10). */
  #mayResend(): boolean {
    if (!this.#isReused || this.#sent > 1) return false;
    return performance.now() - this.#startedMs < RESEND_WITHIN_MS;
  }

  /** Replaces a dead reused connection by a new one. */
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
    const { host, origin } = this.#target;
    const { policy, lookup } = this.#client.settings;
    const { partnerId } = this.#control;
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

  /** Tries the next address, with a time limit, so that a dead address does not use up the time of the others. */
  #openNext(): void {
    const address = this.#addresses.shift();
    if (address === undefined) return;
    this.#address = address;
    clearTimeout(this.#addressDeadline);
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

  /** Resolves the request with its result. A connection that was not released before cannot take another request. */
  #settle(ended: Ended): void {
    const resolve = this.#resolve;
    if (resolve === undefined) return;
    this.#resolve = undefined;
    clearTimeout(this.#deadline);
    clearTimeout(this.#addressDeadline);
    this.#lookup?.abort();
    this.#connection?.destroy();
    resolve({ ...ended, resent: this.#sent > 1 });
  }
}

type FailureCode =
  | "invalid_url"
  | "timeout"
  | "dns"
  | "blocked_address"
  | "connect"
  | "tls"
  | "reset"
  | "protocol";

/**
 * The most characters of the detail of a failure (our choice), because a certificate can put a long list of names into
 * it.
 */
export const MAX_DETAIL_CHARS = 300;

/** Whether the failure is about the address, so that the next address of the name may work. */
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

/**
 * Classifies the end of a connection. `ours` is a failure of our proxy or of this machine (contract 7.8). Bun 1.4.4
 * reports a lack of file descriptors as ECONNREFUSED, and the resolver reports it as an unknown name, so this
 * function opens a file descriptor as a test.
 */
function closeCode(phase: ConnectionPhase, error: Error | undefined): FailureCode | "ours" {
  const code = codeOf(error);
  if (phase === "connecting" || phase === "tunnelling") {
    if (OUR_CODES.test(code) || lacksDescriptors()) return "ours";
    return isAboutAddress(phase, error) ? "connect" : "ours";
  }
  // TLS 1.3 reports a rejected client only after the handshake, so an error of TLS counts as `tls` then, too.
  return phase === "handshaking" || code.startsWith("ERR_SSL") ? "tls" : "reset";
}

/**
 * Describes the end of a connection. The code of the error is more precise than a message such as "unable to verify".
 */
function closeDetail(phase: ConnectionPhase, error: Error | undefined): string {
  if (error === undefined)
    return `the ${phase === "tunnelling" ? "proxy" : "receiver"} closed the connection`;
  const code = codeOf(error);
  const { message } = error;
  // An error without a code has the empty code, which every message includes, so that the message stays as it is.
  const text = message.includes(code) ? message : `${code}: ${message}`;
  return text.slice(0, MAX_DETAIL_CHARS).toWellFormed();
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Codes of errors that only this machine can cause: it lacks a file descriptor, buffer, memory, port or permission. */
const OUR_CODES = /^(?:EMFILE|ENFILE|ENOBUFS|ENOMEM|EADDRNOTAVAIL|EAGAIN|EPERM|EACCES|EAI_MEMORY)$/;

function lacksDescriptors(): boolean {
  try {
    closeSync(openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    return /^E[MN]FILE$/.test(codeOf(error));
  }
}
