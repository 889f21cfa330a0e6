import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

import type { EgressProxy } from "./egress-proxy.ts";

/** A proxy that answers more than this before its tunnel stands is none. */
const MAX_HEAD_BYTES = 16 * 1024;
const HEAD_END = "\r\n\r\n";

export interface TunnelEnd {
  /** Checked; the proxy is asked for it and not for the name, which it might resolve to another. */
  readonly address: string;
  readonly port: number;
  /** Of the certificate; undefined for a plain connection. */
  readonly tls: { readonly host: string; readonly ca: readonly string[] } | undefined;
}

/** A connection through the operator's proxy (RFC 9110, 9.3.6). Rejects if the proxy or TLS refuses; `signal` destroys it. */
export async function openTunnel(
  proxy: EgressProxy,
  end: TunnelEnd,
  signal: AbortSignal,
): Promise<Socket> {
  const socket = connect({ host: proxy.host, port: proxy.port });
  // For ever: an error that comes when nobody listens any more must not end the process.
  socket.on("error", () => {});
  signal.addEventListener("abort", () => socket.destroy(), { once: true });
  try {
    await askFor(socket, proxy, end);
    return end.tls === undefined ? socket : await secure(socket, end.tls);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function askFor(socket: Socket, { authorization }: EgressProxy, to: TunnelEnd): Promise<void> {
  const host = isIP(to.address) === 6 ? `[${to.address}]` : to.address;
  const authority = `${host}:${to.port}`;
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`];
  if (authorization !== undefined) lines.push(`Proxy-Authorization: ${authorization}`);
  return new Promise((resolve, reject) => {
    let head = "";
    const read = (chunk: Buffer) => {
      head += chunk.toString("latin1");
      const end = head.indexOf(HEAD_END);
      if (end === -1 && head.length <= MAX_HEAD_BYTES) return;
      socket.removeListener("data", read);
      // What stands behind is the proxy's own, since nothing was asked of the other side yet.
      const isAlone = end === head.length - HEAD_END.length;
      if (isAlone && /^HTTP\/1\.[01] 2\d\d[ \r]/.test(head)) resolve();
      else reject(new Error("The proxy did not open the connection."));
    };
    socket.on("data", read);
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("The proxy closed the connection.")));
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  });
}

function secure(
  socket: Socket,
  { host, ca }: { readonly host: string; readonly ca: readonly string[] },
): Promise<Socket> {
  const named = isIP(host) === 0 ? { servername: host } : {};
  const secured = connectTls({ socket, host, ca: [...ca], rejectUnauthorized: true, ...named });
  return new Promise((resolve, reject) => {
    secured.once("secureConnect", () => resolve(secured));
    // These stay: a late error must not end the process.
    secured.on("error", reject);
    secured.once("close", () => reject(new Error("The connection was closed.")));
  });
}
