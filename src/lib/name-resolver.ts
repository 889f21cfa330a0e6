import { Resolver } from "node:dns/promises";
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";

import { startDeadline } from "./waiter.ts";
import { FairQueue } from "./fair-queue.ts";

export interface LookupOptions {
  /** The partner that chose the host name; without a partner, the name gets a share of the look-ups for itself. */
  readonly partnerId?: number | null | undefined;
  /** The look-up ends when this signal aborts, unless another caller waits for the same host name. */
  readonly signal?: AbortSignal | undefined;
}

/** Resolves a host name to all its addresses; rejects if there is none. */
export type Lookup = (host: string, options?: LookupOptions) => Promise<readonly string[]>;

/**
 * The most simultaneous look-ups. A dispatcher has as many simultaneous requests, so no request waits for the look-up
 * of another.
 */
const MAX_RUNNING = 2_048;
/**
 * The most simultaneous look-ups of a partner. Its two subscriptions have 24 simultaneous requests, so they never
 * wait.
 */
const MAX_OF_PARTNER = 32;
const MAX_WAITING = 2_048;
/**
 * The time in milliseconds after which a look-up ends that DNS does not answer, after all repetitions (contract
 * 7.11).
 */
const ANSWER_MS = 10_000;
/** The time in milliseconds for which a failed look-up is remembered (contract 7.11). */
const FAILED_FOR_MS = 3_000;
/**
 * The number of idle c-ares channels that are kept. A new channel costs 90 µs and 33 KB that the garbage collector
 * does not see.
 */
const MAX_IDLE = 64;

/** Makes c-ares repeat a query after a second and double the wait each time, until `ANSWER_MS` ends the look-up. */
const REPETITION = { timeout: 1_000, tries: 6 };

/** Error codes with which DNS reports that a name has no address. */
const ABSENT = new Set(["ENOTFOUND", "ENODATA", "EBADNAME"]);
/** Error codes of a look-up without an answer; `ECANCELLED` is the end of `ANSWER_MS`. */
const SILENT = new Set(["ETIMEOUT", "ECANCELLED"]);
const SERVER_FAILURE = "ESERVFAIL";

/** A c-ares channel: its own sockets, and the name servers of resolv.conf at the time of its creation. */
export type Channel = Pick<Resolver, "resolve4" | "resolve6" | "cancel">;

interface Settings {
  readonly hostsFile?: string;
  readonly resolvFile?: string;
  readonly newChannel?: () => Channel;
  readonly answerMs?: number;
  readonly monotonicMs?: () => number;
}

/** A look-up in progress. All callers that ask for its host name share it. */
interface Flight {
  readonly answer: Promise<readonly string[]>;
  readonly cancel: () => void;
  callers: number;
}

/**
 * Looks host names up in the hosts file and then in DNS, with the name servers and search domains of resolv.conf.
 * c-ares waits for DNS on the event loop and needs no thread. `lookup` of node:dns does not fit: Bun 1.4.4 runs it as
 * a blocking getaddrinfo on the threads that argon2, WebCrypto and file reads share, one per core, so two silent
 * names stop them.
 *
 * The number of simultaneous look-ups is limited, and each partner has a share. A look-up is cancelled when its last
 * caller leaves. Addresses are not cached, because each connection looks its host name up again (contract 7.11).
 */
export class NameResolver {
  readonly #hosts: () => ReadonlyMap<string, readonly string[]>;
  readonly #conf: () => ResolvConf;
  readonly #settings: Required<Pick<Settings, "newChannel" | "answerMs" | "monotonicMs">>;
  readonly #places = new FairQueue({
    running: MAX_RUNNING,
    share: MAX_OF_PARTNER,
    waiting: MAX_WAITING,
    rejection: () => new Error("too many names wait to be looked up"),
  });
  readonly #flights = new Map<string, Flight>();
  /** Failures by host name, in the order in which they expire. */
  readonly #failures = new Map<string, { readonly error: LookupError; readonly endsMs: number }>();
  /** Idle channels that were created with the current version of resolv.conf. */
  #idle: Channel[] = [];
  #idleConf: ResolvConf | undefined;

  constructor(settings: Settings = {}) {
    this.#hosts = whenChanged(settings.hostsFile ?? "/etc/hosts", readHosts);
    this.#conf = whenChanged(settings.resolvFile ?? "/etc/resolv.conf", readResolvConf);
    this.#settings = {
      newChannel: settings.newChannel ?? (() => new Resolver(REPETITION)),
      answerMs: settings.answerMs ?? ANSWER_MS,
      monotonicMs: settings.monotonicMs ?? (() => performance.now()),
    };
  }

  readonly lookup: Lookup = async (host, { partnerId, signal } = {}) => {
    refuseAborted(signal);
    const written = this.#hosts().get(host);
    if (written !== undefined) {
      FROM_HOSTS_FILE.add(written);
      return written;
    }
    const flight = this.#flights.get(host);
    if (flight !== undefined) return this.#follow(host, flight, signal);
    const party = partnerId == null ? host : `partner ${partnerId}`;
    return this.#places.take([party], async () => {
      refuseAborted(signal);
      const failure = this.#recentFailure(host);
      if (failure !== undefined) throw failure;
      // Another caller may have started the look-up of this host name while this caller waited for a slot.
      return this.#follow(host, this.#flights.get(host) ?? this.#begin(host), signal);
    });
  };

  async #follow(host: string, flight: Flight, signal?: AbortSignal): Promise<readonly string[]> {
    flight.callers += 1;
    const leave = () => {
      flight.callers -= 1;
      // The look-up is removed from the list before it is cancelled, so that a later caller starts a new look-up.
      if (flight.callers > 0 || !this.#isCurrent(host, flight)) return;
      this.#flights.delete(host);
      flight.cancel();
    };
    signal?.addEventListener("abort", leave, { once: true });
    try {
      return await flight.answer;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  #isCurrent(host: string, flight: Flight): boolean {
    return this.#flights.get(host) === flight;
  }

  #begin(host: string): Flight {
    const conf = this.#conf();
    const channel = this.#takeChannel(conf);
    const beganMs = this.#settings.monotonicMs();
    const cancel = () => channel.cancel();
    const deadline = startDeadline(this.#settings.answerMs, { expire: cancel });
    const flight: Flight = { callers: 0, cancel, answer: ask(channel, host, conf) };
    this.#flights.set(host, flight);
    const end = (failure?: unknown) => {
      clearTimeout(deadline);
      this.#giveBack(channel, conf);
      if (!this.#isCurrent(host, flight)) return;
      this.#flights.delete(host);
      if (failure instanceof LookupError && failure.isAboutName)
        this.#remember(host, failure.code, beganMs);
    };
    flight.answer.then(() => end(), end);
    return flight;
  }

  #takeChannel(conf: ResolvConf): Channel {
    if (conf !== this.#idleConf) this.#idle = [];
    this.#idleConf = conf;
    return this.#idle.pop() ?? this.#settings.newChannel();
  }

  #giveBack(channel: Channel, conf: ResolvConf): void {
    if (conf === this.#idleConf && this.#idle.length < MAX_IDLE) this.#idle.push(channel);
  }

  #recentFailure(host: string): LookupError | undefined {
    const nowMs = this.#settings.monotonicMs();
    for (const [name, { endsMs }] of this.#failures) {
      if (endsMs > nowMs) break;
      this.#failures.delete(name);
    }
    return this.#failures.get(host)?.error;
  }

  #remember(host: string, code: string, beganMs: number): void {
    const error = new LookupError(host, code, beganMs);
    this.#failures.delete(host);
    this.#failures.set(host, { error, endsMs: this.#settings.monotonicMs() + FAILED_FOR_MS });
  }
}

function refuseAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new Error("no look-up was begun in time");
}

/** Reports why a look-up found no address. The text has the name as requested, because search domains are internal. */
export class LookupError extends Error {
  /**
   * Whether the host name or its name servers caused the failure. A failure with another cause, such as a lack of
   * file descriptors, is not remembered, because the next look-up may succeed.
   */
  readonly isAboutName: boolean;
  /** Whether DNS answered that the name has no address. */
  readonly isAnswer: boolean;
  readonly code: string;
  /** The monotonic time in ms at which an earlier look-up began that this failure is remembered from; undefined if new. */
  readonly rememberedMs: number | undefined;

  constructor(host: string, code: string, rememberedMs?: number) {
    const isSilent = SILENT.has(code);
    if (isSilent) super(`no answer from DNS for ${host} in time`);
    else super(ABSENT.has(code) ? `${host} has no address` : `DNS fails for ${host}: ${code}`);
    this.code = code;
    this.rememberedMs = rememberedMs;
    this.isAnswer = ABSENT.has(code);
    this.isAboutName = isSilent || this.isAnswer || code === SERVER_FAILURE;
  }
}

/**
 * Queries each form of a host name until a form has addresses. It continues after a server failure, but not after
 * silence, as getaddrinfo does.
 */
async function ask(channel: Channel, host: string, conf: ResolvConf): Promise<string[]> {
  let failure = "ENOTFOUND";
  for (const name of formsOf(host, conf)) {
    const answers = await Promise.allSettled([channel.resolve4(name), channel.resolve6(name)]);
    const [ipv4 = [], ipv6 = []] = answers.map((one) =>
      one.status === "fulfilled" ? one.value : [],
    );
    if (ipv4.length + ipv6.length > 0) return alternate(ipv4, ipv6);
    const codes = answers.map((one) => (one.status === "rejected" ? codeOf(one.reason) : ""));
    const worse = codes.find((code) => code !== "" && !ABSENT.has(code));
    failure = worse ?? failure;
    if (worse !== undefined && worse !== SERVER_FAILURE) break;
  }
  throw new LookupError(host, failure);
}

function codeOf(reason: unknown): string {
  return reason instanceof Error && "code" in reason ? String(reason.code) : String(reason);
}

/** Alternates IPv4 and IPv6, so that an address of a family without a route is followed by one of the other family. */
function alternate(ipv4: readonly string[], ipv6: readonly string[]): string[] {
  const longer = Math.max(ipv4.length, ipv6.length);
  return Array.from({ length: longer }, (_, at) => [
    ...ipv4.slice(at, at + 1),
    ...ipv6.slice(at, at + 1),
  ]).flat();
}

/** The settings of resolv.conf(5) that c-ares ignores in queries for one address family. */
export interface ResolvConf {
  readonly search: readonly string[];
  readonly ndots: number;
}

export function readResolvConf(text: string): ResolvConf {
  let search: string[] = [];
  let ndots = 1;
  for (const line of text.split("\n")) {
    const [keyword, ...values] = line
      .replace(/[#;].*/, "")
      .trim()
      .split(/\s+/);
    if (keyword === "search" || keyword === "domain")
      search = values.map((one) => one.replace(/\.$/, "")).filter((one) => one !== "");
    if (keyword !== "options") continue;
    for (const value of values) ndots = Number(/^ndots:(\d{1,2})$/.exec(value)?.[1] ?? ndots);
  }
  return { search, ndots };
}

/**
 * Lists the forms of a host name in the order in which they are tried. A name with fewer dots than `ndots` gets the
 * search domains first.
 */
export function formsOf(host: string, { search, ndots }: ResolvConf): string[] {
  const dots = host.split(".").length - 1;
  const longer = search.map((domain) => `${host}.${domain}`);
  return dots >= ndots ? [host, ...longer] : [...longer, host];
}

/** The addresses of the hosts file, of which no name server was asked. */
const FROM_HOSTS_FILE = new WeakSet<readonly string[]>();

/** Whether a look-up found these addresses in the hosts file, so that they say nothing about DNS. */
export const isFromHostsFile = (addresses: readonly string[]): boolean =>
  FROM_HOSTS_FILE.has(addresses);

/** Reads the addresses of each host name from all lines of hosts(5) that contain it. */
export function readHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names.map((one) => one.toLowerCase())) {
      const known = hosts.get(name) ?? [];
      if (!known.includes(address)) hosts.set(name, [...known, address]);
    }
  }
  return hosts;
}

/**
 * Returns a function that reads `file` again when it has changed, as getaddrinfo does. An unreadable file counts as
 * empty.
 */
function whenChanged<T>(file: string, read: (text: string) => T): () => T {
  let version: string | undefined;
  let value = read("");
  return () => {
    const stat = statSync(file, { throwIfNoEntry: false });
    const now = stat === undefined ? "" : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
    if (now !== version) value = read(textOf(file));
    version = now;
    return value;
  };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** Resolves the texts of a name's TXT records, of up to 255 bytes; empty if there is none or DNS does not answer. */
export type TxtLookup = (name: string) => Promise<readonly string[]>;

/** Creates a look-up of TXT records that takes at most `ANSWER_MS`; without `servers` it asks those of the system. */
export const txtLookup =
  (servers?: readonly string[]): TxtLookup =>
  async (name) => {
    const resolver = new Resolver(REPETITION);
    if (servers !== undefined) resolver.setServers(servers);
    const deadline = setTimeout(() => resolver.cancel(), ANSWER_MS);
    try {
      return (await resolver.resolveTxt(name)).flat();
    } catch {
      return [];
    } finally {
      clearTimeout(deadline);
    }
  };

export const systemTxt = txtLookup();

const system = new NameResolver();

/** Looks host names up with the resolver that the whole process shares. */
export const systemLookup: Lookup = system.lookup;
