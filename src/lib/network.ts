import { isIP } from "node:net";

/** Returns the /64 of an IPv6 address, which is usually one local network, or the IPv4 address itself. */
export function networkOf(address: string): string {
  return networksOf(address).at(-1) ?? address;
}

/**
 * Returns the networks of an address, largest first. For an IPv6 address these are the /48, the largest that a site
 * gets, the /56 that a residential line usually gets, and the /64. An IPv4 address is returned alone.
 */
export function networksOf(address: string): readonly string[] {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return [mapped];
  if (isIP(address) !== 6) return [address];
  const groups = firstGroups(address);
  const site = groups.slice(0, 3).join(":");
  const subnet = groups[3] ?? "0";
  const line = (Number.parseInt(subnet, 16) & 0xff00).toString(16);
  return [`${site}::/48`, `${site}:${line}::/56`, `${site}:${subnet}`];
}

/** Returns the first 64 bits of an IPv6 address as four groups without leading zeros. */
function firstGroups(address: string): string[] {
  const [head = "", tail] = address.toLowerCase().split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array.from({ length: zeros }, () => "0"), ...after];
  return groups.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ""));
}

const UNROUTED_CODE = /^E(?:NET|HOST)(?:UNREACH|DOWN)$|^EAFNOSUPPORT$|^EADDRNOTAVAIL$/;
/** The port of the discard protocol (RFC 863). No packet is sent to it. */
const DISCARD_PORT = 9;

/**
 * Returns whether this machine has a route to the address. It connects a UDP socket, which looks up the route and sends
 * nothing. A TCP connection does not tell: Bun 1.4.4 reports a missing route as ECONNREFUSED, like a refusal by the
 * receiver.
 */
export async function hasRoute(address: string): Promise<boolean> {
  try {
    const connect = { hostname: address, port: DISCARD_PORT };
    (await Bun.udpSocket({ connect })).close();
    return true;
  } catch (error) {
    return !UNROUTED_CODE.test(String(error instanceof Error && "code" in error && error.code));
  }
}
