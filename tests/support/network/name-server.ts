import { createSocket } from "node:dgram";
import { randomInt } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The answer to a question: addresses of both families, an alias, an error, or silence. */
type DnsAnswer =
  | { addresses?: readonly string[]; alias?: string }
  | "unknown"
  | "failure"
  | "silence";
/** Answers by name; `nth` counts the questions for the name and one address family, from 1. */
export type Zone = Readonly<Record<string, (nth: number) => DnsAnswer>>;

export interface NameServer {
  readonly address: string;
  /** Returns how often the IPv4 addresses of a name were requested. */
  asked(name: string): number;
  /** A command prefix that makes the following command use only this name server. */
  readonly prefix: readonly string[];
  stop(): void;
}

const PORT = 53;
const [A, CNAME, AAAA] = [1, 5, 28];
const CODES = { unknown: 3, failure: 2, silence: undefined };
/** Limits how many aliases are followed, because aliases may form a cycle. */
const MOST_ALIASES = 8;

/** Starts a name server on a free loopback address; every record has a TTL of 0. */
export async function startNameServer(zone: Zone): Promise<NameServer> {
  const counts = new Map<string, number>();
  const look = (name: string, type: number): DnsAnswer => {
    const key = `${name} ${type}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    return (zone[name] ?? (() => "unknown" as const))(counts.get(key) ?? 0);
  };
  const socket = createSocket("udp4");
  socket.on("message", (question, { port, address }) => {
    const { name, type, end } = nameIn(question);
    const { records, code } = follow(name, type, look);
    if (code !== undefined)
      socket.send(reply(question.subarray(0, end), records, code), port, address);
  });
  const address = `127.53.${randomInt(256)}.${randomInt(1, 255)}`;
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(PORT, address, resolve);
  });
  const file = join(mkdtempSync(join(tmpdir(), "resolver-")), "resolv.conf");
  writeFileSync(file, `nameserver ${address}\n`);
  const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';
  return {
    address,
    asked: (name) => counts.get(`${name} ${A}`) ?? 0,
    prefix: ["unshare", "-m", "sh", "-c", script, file],
    stop: () => socket.close(),
  };
}

function nameIn(question: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: question.readUInt16BE(at + 1), end: at + 5 };
}

/** Resolves a name with all its aliases, as a recursive server does. */
function follow(name: string, type: number, look: (name: string, type: number) => DnsAnswer) {
  const records: Buffer[] = [];
  for (let at = name; records.length < MOST_ALIASES;) {
    const answer = look(at, type);
    if (typeof answer === "string") return { records, code: CODES[answer] };
    if (answer.alias === undefined) {
      const found = (answer.addresses ?? []).filter((one) => (isIPv6(one) ? AAAA : A) === type);
      records.push(...found.map((one) => record(at, type, encodeAddress(one))));
      break;
    }
    records.push(record(at, CNAME, encodeName(answer.alias)));
    at = answer.alias;
  }
  return { records, code: 0 };
}

function reply(question: Buffer, records: readonly Buffer[], code: number): Buffer {
  const answer = Buffer.concat([question, ...records]);
  answer.writeUInt16BE(0x8180 + code, 2);
  for (const [at, count] of [1, records.length, 0, 0].entries())
    answer.writeUInt16BE(count, 4 + 2 * at);
  return answer;
}

/** Encodes a record with a TTL of 0. */
function record(name: string, type: number, data: Buffer): Buffer {
  const head = Buffer.from([0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([encodeName(name), head, data]);
}

function encodeName(name: string): Buffer {
  return Buffer.concat([
    ...name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0]),
  ]);
}

/** Encodes an address; of IPv6 only forms with leading zeros, such as `::1` and `::ffff:127.0.0.1`. */
function encodeAddress(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split(".").map(Number));
  const bytes = Buffer.alloc(16);
  const { hostname } = new URL(`http://[${address}]`);
  const groups = hostname.slice(1, -1).replace("::", "").split(":");
  for (const [at, group] of groups.toReversed().entries())
    bytes.writeUInt16BE(Number.parseInt(group, 16), 14 - 2 * at);
  return bytes;
}
