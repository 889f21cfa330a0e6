import type { Socket } from "node:net";
import type { EgressProxy } from "../../src/lib/egress-proxy.ts";
import { hasBareNewline, readStatus } from "./response-head.ts";

/** How long all heads of a proxy's answer may be together: as long as those of a receiver (our choice). */
export const MAX_PROXY_HEAD_BYTES = 16 * 1024;

const HEAD_END = Buffer.from("\r\n\r\n");
const EMPTY = Buffer.alloc(0);

/** Why there is no tunnel. Of what the proxy wrote it says the status only. */
export class ProxyRefusal extends Error {
  /** A gateway status is about the address that was asked for; anything else is about the proxy or us. */
  readonly isAboutAddress: boolean;

  constructor(reason: string, statusCode?: number) {
    super(reason);
    this.name = "ProxyRefusal";
    this.isAboutAddress = statusCode !== undefined && statusCode >= 502 && statusCode <= 504;
  }
}

export interface TunnelUser {
  /** From here on the socket's bytes are the receiver's. */
  tunnelReady(): void;
  tunnelRefused(refusal: ProxyRefusal): void;
}

/**
 * Asks for the connection (RFC 9110, 9.3.6) as soon as the socket is connected to the proxy. It is
 * asked for by the checked address, never by name: a proxy that looked the name up itself could be led
 * to an address that nobody checked.
 */
export function openTunnel(
  socket: Socket,
  to: { proxy: EgressProxy; address: string; port: number },
  user: TunnelUser,
): void {
  const answer = new TunnelAnswer();
  socket.on("connect", () => void socket.write(encodeConnect(to)));
  const read = (chunk: Buffer) => {
    const result = answer.feed(chunk);
    if (result === undefined) return;
    socket.off("data", read);
    if (result === "established") user.tunnelReady();
    else user.tunnelRefused(result);
  };
  socket.on("data", read);
}

function encodeConnect(to: { proxy: EgressProxy; address: string; port: number }): string {
  const host = to.address.includes(":") ? `[${to.address}]` : to.address;
  const authority = `${host}:${to.port}`;
  const { authorization } = to.proxy;
  const credentials =
    authorization === undefined ? "" : `Proxy-Authorization: ${authorization}\r\n`;
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${credentials}\r\n`;
}

class TunnelAnswer {
  #pending: Buffer = EMPTY;
  #headBytes = 0;

  /** Undefined until more has come. Only the status counts: the fields of a 2xx frame nothing. */
  feed(chunk: Buffer): "established" | ProxyRefusal | undefined {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const at = this.#pending.indexOf(HEAD_END);
      const size = at === -1 ? this.#pending.length : at + HEAD_END.length;
      if (this.#headBytes + size > MAX_PROXY_HEAD_BYTES)
        return new ProxyRefusal(`the proxy's headers are over ${MAX_PROXY_HEAD_BYTES} bytes`);
      // Otherwise we would wait until the deadline for a proxy that ends its lines with LF alone.
      if (hasBareNewline(this.#pending.subarray(0, size), 0))
        return new ProxyRefusal("the proxy's answer has a line without CR");
      if (at === -1) return undefined;
      const statusCode = readStatus(this.#pending.toString("latin1", 0, at));
      this.#headBytes += size;
      this.#pending = this.#pending.subarray(size);
      if (statusCode === undefined)
        return new ProxyRefusal("the proxy's answer does not start with an HTTP/1 status line");
      const isInterim = statusCode < 200 && statusCode !== 101;
      if (!isInterim) return this.#judge(statusCode);
    }
  }

  #judge(statusCode: number): "established" | ProxyRefusal {
    if (statusCode < 200 || statusCode >= 300)
      return new ProxyRefusal(`the proxy answered CONNECT with ${statusCode}`, statusCode);
    // Nothing was asked of the receiver yet, so these bytes could only be mistaken for its answer.
    if (this.#pending.length > 0)
      return new ProxyRefusal("the proxy sent more than its answer to CONNECT");
    return "established";
  }
}
