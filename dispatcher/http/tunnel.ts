import type { Socket } from "node:net";
import type { EgressProxy } from "../../src/lib/egress-proxy.ts";
import { readStatus } from "./response-head.ts";

/** How long all heads of a proxy's answer may be together: as long as those of a receiver (our choice). */
export const MAX_PROXY_HEAD_BYTES = 16 * 1024;

const HEAD_END = "\r\n\r\n";

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

/**
 * Asks for the connection (RFC 9110, 9.3.6) as soon as the socket is connected to the proxy. It is
 * asked for by the checked address, never by name: a proxy that looked the name up itself could be led
 * to an address that nobody checked.
 */
export function openTunnel(
  socket: Socket,
  to: { proxy: EgressProxy; address: string; port: number },
  /** From here on the socket's bytes are the receiver's, unless the proxy has refused. */
  done: (refusal: ProxyRefusal | undefined) => void,
): void {
  let answer = "";
  socket.on("connect", () => void socket.write(encodeConnect(to)));
  const read = (chunk: Buffer) => {
    answer += chunk.toString("latin1");
    const verdict = judge(answer);
    if (verdict === "unfinished") return;
    socket.off("data", read);
    done(verdict === "established" ? undefined : verdict);
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

/** Interim heads come first. Of the final one only the status counts: the fields of a 2xx frame nothing. */
function judge(answer: string): "unfinished" | "established" | ProxyRefusal {
  for (let from = 0; ;) {
    const end = answer.indexOf(HEAD_END, from);
    const behind = end === -1 ? answer.length : end + HEAD_END.length;
    if (behind > MAX_PROXY_HEAD_BYTES)
      return new ProxyRefusal(`the proxy's headers are over ${MAX_PROXY_HEAD_BYTES} bytes`);
    // Otherwise we would wait until the deadline for a proxy that ends its lines with LF alone.
    if (/(?:^|[^\r])\n/.test(answer.slice(from, behind)))
      return new ProxyRefusal("the proxy's answer has a line without CR");
    if (end === -1) return "unfinished";
    const statusCode = readStatus(answer.slice(from, end));
    if (statusCode === undefined)
      return new ProxyRefusal("the proxy's answer does not start with an HTTP/1 status line");
    from = behind;
    const isInterim = statusCode < 200 && statusCode !== 101;
    if (isInterim) continue;
    if (statusCode < 200 || statusCode >= 300)
      return new ProxyRefusal(`the proxy answered CONNECT with ${statusCode}`, statusCode);
    // Nothing was asked of the receiver yet, so what follows could only be mistaken for its answer.
    if (behind < answer.length)
      return new ProxyRefusal("the proxy sent more than its answer to CONNECT");
    return "established";
  }
}
