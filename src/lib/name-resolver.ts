import { Resolver } from "node:dns/promises";
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";

import { startDeadline } from "./waiter.ts";
import { FairQueue } from "./fair-queue.ts";

export interface LookupOptions {
  /** The partner that chose the host name. Without a partner, the name itself has a share of the look-ups. */
  readonly partnerId?: number | null | undefined;
  /** The look-up ends when this signal aborts, unless another caller waits for the same host name. */
  readonly signal?: AbortSignal | undefined;
}

/** Resolves a host name to all its addresses; rejects if there is none. */
export type Lookup = (host: string, options?: LookupOptions) => Promise<readonly string[]>;

/**
 * Maximum number of concurrent look-ups. It equals the maximum number of concurrent requests of a dispatcher, so no
 * request waits for the look-up of another.
 */
const MAX_RUNNING = 2_048;
/**
 * Maximum number of concurrent look-ups per partner. The two subscriptions of a partner have at most 24 concurrent
 * requests, so their look-ups never wait.
 */
const MAX_PER_PARTNER = 32;
const MAX_WAITING = 2_048;
/** Time in ms after which a look-up without an answer ends, including all repeated queries (contract 7.11). */
const ANSWER_MS = 10_000;
/** Time in ms for which a failed look-up is cached (contract 7.11). */
const FAILED_FOR_MS = 3_000;
/**
 * Number of idle c-ares channels that are kept for reuse. A new channel costs 90 µs and 33 KB that the garbage
 * collector does not count.
 */
const MAX_IDLE = 64;

/**
 * Options that make c-ares repeat a query after 1 s and double the wait each time, until `ANSWER_MS` ends the look-up.
 */
const REPETITION = { timeout: 1_000, tries: 6 };

/** Error codes with which DNS reports that a name has no address. */
const NO_ADDRESS = new Set(["ENOTFOUND", "ENODATA", "EBADNAME"]);
/** Error codes of a look-up without an answer. `ECANCELLED` occurs when `ANSWER_MS` has passed. */
const NO_ANSWER = new Set(["ETIMEOUT", "ECANCELLED"]);
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

/** A look-up in progress. All callers for its host name share it. */
interface Flight {
  readonly answer: Promise<readonly string[]>;
  readonly cancel: () => void;
  callers: number;
}

/**
 * Resolves host names with the hosts file and then with DNS, using the name servers and search domains of resolv.conf.
 * c-ares waits for DNS on the event loop and needs no thread. `lookup` of node:dns is not used, because Bun 1.4.4 runs
 * it as a blocking getaddrinfo on a thread pool. That pool has one thread per core and also serves argon2, WebCrypto
 * and file reads, so a few look-ups without an answer would stop them.
 *
 * The number of concurrent look-ups is limited, and each partner has a share. A look-up is cancelled when its last
 * caller leaves. Addresses are not cached, because each connection must resolve its host name again (contract 7.11).
 */
export class NameResolver {
  readonly #hosts: () => ReadonlyMap<string, readonly string[]>;
  readonly #conf: () => ResolvConf;
  readonly #settings: Required<Pick<Settings, "newChannel" | "answerMs" | "monotonicMs">>;
  readonly #places = new FairQueue({
    running: MAX_RUNNING,
    share: MAX_PER_PARTNER,
    waiting: MAX_WAITING,
    rejection: () => new Error("too many DNS look-ups are waiting"),
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
      // Joins a look-up of this host name that another caller may have started while this caller waited for a place.
      return this.#follow(host, this.#flights.get(host) ?? this.#begin(host), signal);
    });
  };

  async #follow(host: string, flight: Flight, signal?: AbortSignal): Promise<readonly string[]> {
    flight.callers += 1;
    const leave = () => {
      flight.callers -= 1;
      // The look-up is removed from `#flights` before it is cancelled, so that a later caller starts a new one.
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
  if (signal?.aborted) throw new Error("the DNS look-up did not start in time");
}

/**
 * The error of a look-up that found no address. Its message contains the name as requested, because the search domains
 * are internal.
 */
export class LookupError extends Error {
  /**
   * Whether the host name or its name servers caused the failure. Failures with another cause, such as a lack of file
   * descriptors, are not cached, because the next look-up may succeed.
   */
  readonly isAboutName: boolean;
  /** Whether DNS answered that the name has no address. */
  readonly isAnswer: boolean;
  readonly code: string;
  /** If this failure was cached: the monotonic time in ms at which its look-up began; undefined for a new failure. */
  readonly rememberedMs: number | undefined;

  constructor(host: string, code: string, rememberedMs?: number) {
    const isSilent = NO_ANSWER.has(code);
    if (isSilent) super(`DNS did not respond for ${host} in time`);
    else super(NO_ADDRESS.has(code) ? `${host} has no address` : `DNS fails for ${host}: ${code}`);
    this.code = code;
    this.rememberedMs = rememberedMs;
    this.isAnswer = NO_ADDRESS.has(code);
    this.isAboutName = isSilent || this.isAnswer || code === SERVER_FAILURE;
  }
}

/**
 * Queries each form of a host name until one of them has addresses. Like getaddrinfo, it continues after a server
 * failure, but not after a query without an answer.
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
    const worse = codes.find((code) => code !== "" && !NO_ADDRESS.has(code));
    failure = worse ?? failure;
    if (worse !== undefined && worse !== SERVER_FAILURE) break;
  }
  throw new LookupError(host, failure);
}

function codeOf(reason: unknown): string {
  return reason instanceof Error && "code" in reason ? String(reason.code) : String(reason);
}

/** Alternates IPv4 and IPv6 addresses. So if one family has no route, the second address is of the other family. */
function alternate(ipv4: readonly string[], ipv6: readonly string[]): string[] {
  const longer = Math.max(ipv4.length, ipv6.length);
  return Array.from({ length: longer }, (_, at) => [
    ...ipv4.slice(at, at + 1),
    ...ipv6.slice(at, at + 1),
  ]).flat();
}

/** The settings of resolv.conf(5) that c-ares ignores in queries for a single address family. */
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
 * Returns the forms of a host name in the order in which they are tried. If the name has fewer dots than `ndots`, the
 * forms with search domains come first.
 */
export function formsOf(host: string, { search, ndots }: ResolvConf): string[] {
  const dots = host.split(".").length - 1;
  const longer = search.map((domain) => `${host}.${domain}`);
  return dots >= ndots ? [host, ...longer] : [...longer, host];
}

/** The address lists that come from the hosts file and not from DNS. */
const FROM_HOSTS_FILE = new WeakSet<readonly string[]>();

/**
 * Returns whether a look-up found these addresses in the hosts file, in which case they give no information about DNS.
 */
export const isFromHostsFile = (addresses: readonly string[]): boolean =>
  FROM_HOSTS_FILE.has(addresses);

/** Returns the addresses of each host name, collected from all lines of hosts(5) that contain the name. */
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
 * Returns a function that reads `file` again whenever it has changed, as getaddrinfo does. An unreadable file counts as
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

/**
 * Returns the texts of a name's TXT records, each of at most 255 bytes. Returns an empty list if there is none or DNS
 * does not answer.
 */
export type TxtLookup = (name: string) => Promise<readonly string[]>;

/**
 * Creates a look-up of TXT records that takes at most `ANSWER_MS`. Without `servers` it queries the name servers of the
 * system.
 */
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

const systemResolver = new NameResolver();

/** Resolves host names with one resolver that the whole process shares. */
export const systemLookup: Lookup = systemResolver.lookup;
