// Machines as network namespaces on one bridge. `unshare` gives this process namespaces of its own, which hold them
// all, so that the kernel removes every process, link and file of the test when this process ends, however it ends.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The places of the network, with the last number of their address. The clients and receivers are outside. */
const PLACES = {
  outside: 1,
  proxy: 10,
  "api-1": 11,
  "api-2": 12,
  "api-3": 13,
  "dispatcher-1": 21,
  "dispatcher-2": 22,
  "postgres-1": 31,
  "postgres-2": 32,
  "redis-1": 41,
  "redis-2": 42,
  "witness-1": 51,
  "witness-2": 52,
  "witness-3": 53,
} as const;
export type Place = keyof typeof PLACES;
export type Machine = Exclude<Place, "outside">;

const NETWORK = "10.77.0";
/** A mount point that every Linux has; this process mounts an empty file system there, which only it sees. */
const MOUNT = "/run";
const TAIL = 15;

export const subnet = `${NETWORK}.0/24`;

export function addressOf(place: Place): string {
  return `${NETWORK}.${PLACES[place]}`;
}

/** Returns the machines whose name begins with a kind, such as `api`. */
export function machinesOf(kind: string): Machine[] {
  return machines().filter((name) => name.startsWith(kind));
}

function machines(): Machine[] {
  return Object.keys(PLACES).flatMap((name) => (isMachine(name) ? [name] : []));
}

function isMachine(name: string): name is Machine {
  return name in PLACES && name !== "outside";
}

/** Returns the command that runs another command on a machine. */
export function on(machine: Machine): readonly string[] {
  return ["ip", "netns", "exec", machine];
}

export interface Network {
  /** A folder for the files of the machines, in memory; every user may enter it. */
  readonly folder: string;
  /**
   * Drops all packets between each of the first and each of the second places. Returns the heal, which throws if there
   * were none.
   */
  cut(first: readonly Place[], second: readonly Place[]): () => void;
  /** Drops all packets of a machine; returns the heal. */
  isolate(machine: Machine): () => void;
  /** Starts a program on a machine, with a log of its own. */
  start(machine: Machine, command: readonly string[], options?: StartOptions): ChildProcess;
  /** Kills all processes of a machine at once, as a loss of power does. */
  kill(machine: Machine): Promise<void>;
  /** Returns the last lines of each log. */
  tails(): string;
}

interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Runs the program as `nobody`, because PostgreSQL refuses to run as root. */
  readonly isUnprivileged?: boolean;
}

/** `nobody` of every distribution that we know. */
export const NOBODY = 65_534;

/** Creates the machines and the network between them. */
export function createNetwork(): Network {
  run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", MOUNT]);
  const folder = join(MOUNT, "machines");
  const logs = join(folder, "logs");
  mkdirSync(logs, { recursive: true });
  chmodSync(folder, 0o711);
  run(["ip", "link", "set", "lo", "up"]);
  run(["ip", "link", "add", "bridge", "type", "bridge"]);
  run(["ip", "address", "add", `${addressOf("outside")}/24`, "dev", "bridge"]);
  run(["ip", "link", "set", "bridge", "up"]);
  for (const machine of machines()) {
    run(["ip", "netns", "add", machine]);
    run(["ip", "link", "add", machine, "type", "veth", "peer", "eth0", "netns", machine]);
    run(["ip", "link", "set", machine, "master", "bridge", "up"]);
    const within = ["ip", "-netns", machine];
    run([...within, "address", "add", `${addressOf(machine)}/24`, "dev", "eth0"]);
    for (const device of ["lo", "eth0"]) run([...within, "link", "set", device, "up"]);
  }
  run(["nft", "-f", "-"], RULES);
  return {
    folder,
    cut,
    isolate: (machine) =>
      cut([machine], ["outside", ...machines().filter((one) => one !== machine)]),
    start(machine, command, { env = {}, isUnprivileged = false } = {}) {
      const [program = ""] = command;
      const log = openSync(join(logs, `${machine}-${program.split("/").at(-1)}.log`), "a");
      const user = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"];
      const [first = "", ...rest] = [...on(machine), ...(isUnprivileged ? user : []), ...command];
      return spawn(first, rest, {
        cwd: folder,
        env: { PATH: process.env["PATH"] ?? "", HOME: folder, LC_ALL: "C", ...env },
        stdio: ["ignore", log, log],
      });
    },
    async kill(machine) {
      const pids = () => run(["ip", "netns", "pids", machine]).split("\n").filter(Boolean);
      for (let left = pids(); left.length > 0; left = pids()) {
        spawnSync("kill", ["-9", ...left]);
        await Bun.sleep(10);
      }
    },
    tails: () =>
      readdirSync(logs)
        .map((name) => {
          const lines = readFileSync(join(logs, name), "utf8").trimEnd().split("\n");
          return [`== ${name}`, ...lines.slice(-TAIL)].join("\n");
        })
        .join("\n"),
  };
}

/** Drops and counts frames by pairs of addresses, wherever the bridge handles them. ARP passes, as it decides nothing. */
const RULES = `
table bridge cuts {
  set pairs { type ipv4_addr . ipv4_addr; counter; }
  chain forward { type filter hook forward priority 0; ip saddr . ip daddr @pairs drop; }
  chain input { type filter hook input priority 0; ip saddr . ip daddr @pairs drop; }
  chain output { type filter hook output priority 0; ip saddr . ip daddr @pairs drop; }
}`;

function cut(first: readonly Place[], second: readonly Place[]): () => void {
  const pairs = first
    .flatMap((a) => second.map((b) => [addressOf(a), addressOf(b)] as const))
    .flatMap(([a, b]) => [`${a} . ${b}`, `${b} . ${a}`])
    .join(", ");
  const change = (verb: string) =>
    run(["nft", verb, "element", "bridge", "cuts", "pairs", `{ ${pairs} }`]);
  change("add");
  return () => {
    const dropped = run(["nft", "list", "set", "bridge", "cuts", "pairs"]);
    change("delete");
    if (!/packets [1-9]/.test(dropped)) throw new Error(`The cut of ${pairs} dropped nothing.`);
  };
}

function run(command: readonly string[], input = ""): string {
  const [program = "", ...args] = command;
  const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}
