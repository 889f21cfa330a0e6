import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { RedisOptions } from "ioredis";

import { readCertificates } from "./certificates.ts";
import { parseNetworks } from "./egress.ts";
import { fieldsOf } from "./fields.ts";
import { commandLine } from "../../db/executable.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** The name and address from which mails are sent. */
export interface Mailbox {
  readonly name: string;
  readonly address: string;
}

const MASTER_KEY_BYTES = 32;
/**
 * The setting for which a missing file has a remedy: the setup script creates the file that `MASTER_KEY_FILE` names.
 */
const WRITTEN_BY_SETUP = "MASTER_KEY";

/**
 * Reads settings. Each method returns a usable value even if the setting is invalid, and records the error, so that one
 * start reports all errors.
 */
export class SettingsReader {
  readonly errors: string[] = [];
  readonly #env: Env;

  constructor(env: Env) {
    this.#env = env;
  }

  text(name: string, fallback: string): string {
    return this.#get(name) ?? fallback;
  }

  optional<T>(name: string, read: () => T): T | undefined {
    return this.#get(name) === undefined ? undefined : read();
  }

  /**
   * Reads a setting with `parse`. Returns undefined if the setting is absent or invalid. `parse` throws with a reason
   * that contains no secret.
   */
  parsed<T>(name: string, parse: (text: string) => T): T | undefined {
    const text = this.#get(name);
    try {
      return text === undefined ? undefined : parse(text);
    } catch (error) {
      this.#error(name, error instanceof Error ? error.message : "cannot be read");
      return undefined;
    }
  }

  integer(name: string, fallback: number, [min, max]: readonly [number, number]): number {
    const text = this.#get(name) ?? String(fallback);
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.#error(name, `must be a whole number from ${min} to ${max}`);
    return fallback;
  }

  /** Reads a number from 0 to 1. */
  fraction(name: string, fallback: number): number {
    const text = this.#get(name) ?? String(fallback);
    const value = /^\d{0,3}(\.\d{1,9})?$/.test(text) && text !== "" ? Number(text) : Number.NaN;
    if (value >= 0 && value <= 1) return value;
    this.#error(name, "must be a number from 0 to 1");
    return fallback;
  }

  /** Reads a list of as many positive whole numbers as `length`. */
  integers(name: string, fallback: string, length: number): number[] {
    const items = (this.#get(name) ?? fallback).split(",").map((item) => item.trim());
    const good = items.every((item) => /^\d{1,12}$/.test(item) && Number(item) > 0);
    if (!good || items.length !== length)
      this.#error(
        name,
        `must be exactly ${length} whole numbers of at least 1, separated by commas`,
      );
    return items.map(Number);
  }

  choice<T extends string>(name: string, fallback: T, allowed: readonly T[]): T {
    const text = this.#get(name) ?? fallback;
    const value = allowed.find((one) => one === text);
    if (value === undefined) this.#error(name, `must be one of ${allowed.join(", ")}`);
    return value ?? fallback;
  }

  list(name: string): string[] {
    const items = (this.#get(name) ?? "").split(",").map((item) => item.trim());
    return items.filter((item) => item !== "");
  }

  /** Reads URLs to which a browser may be redirected. The error lists the invalid ones. */
  returnAddresses(name: string): string[] {
    const items = this.list(name);
    const bad = items.filter((item) => !isReturnAddress(item));
    if (bad.length > 0)
      this.#error(
        name,
        `has invalid addresses (each must be a URL without user and fragment): ${bad.join(", ")}`,
      );
    return items;
  }

  /** Reads origins in the form in which browsers send them. The error lists the invalid ones. */
  origins(name: string): string[] {
    const items = this.list(name);
    const bad = items.filter((item) => !URL.canParse(item) || new URL(item).origin !== item);
    if (bad.length > 0) this.#error(name, `has invalid origins: ${bad.join(", ")}`);
    return items;
  }

  /** Reads networks in CIDR form. The error lists the invalid ones, which are omitted from the result. */
  networks(name: string): string[] {
    const items = this.list(name);
    const bad = items.filter((item) => !isNetwork(item));
    if (bad.length > 0)
      this.#error(name, `has invalid networks (CIDR form is required): ${bad.join(", ")}`);
    return items.filter((item) => !bad.includes(item));
  }

  /**
   * Reads a URL. `plain` converts a value with additional syntax into a plain URL, which is used only for validation.
   */
  url(
    name: string,
    protocols: readonly string[],
    plain: (text: string) => string = (text) => text,
  ): string {
    const text = this.#get(name);
    if (text === undefined) this.#error(name, `is required (${protocols.join("// or ")}//…)`);
    else if (!protocols.includes(protocolOf(plain(text)) ?? ""))
      this.#error(name, `must be a URL with ${protocols.join("// or ")}//`);
    return text ?? "";
  }

  redisUrl(name: string): string {
    const text = this.#get(name);
    if (text === undefined) this.#error(name, "is required (redis://… or redis+sentinel://…)");
    else this.parsed(name, checkRedisUrl);
    return text ?? "";
  }

  /** Reads a sender: `Name <address>`, or the address alone. */
  mailbox(name: string, fallback: string): Mailbox {
    const text = this.#get(name) ?? fallback;
    const [, title = "", address = text] = /^([^<>\p{Cc}]*)<([^<>]*)>$/u.exec(text) ?? [];
    if (!/^[^\s\p{C}<>()[\]\\,;:@"]+@[^\s\p{C}<>()[\]\\,;:@"]+$/u.test(address))
      this.#error(name, "must be an address, such as ReviewRelay <no-reply@reviews.example>");
    return { name: title.trim().replace(/^"(.*)"$/, "$1"), address };
  }

  /** Reads an address to listen on: a name, or an IP address with or without the brackets of IPv6. */
  host(name: string, fallback: string): string {
    const text = this.#get(name) ?? fallback;
    // The name must also be valid in a URL: URL parsers read a name whose last label is a number as an IPv4 address.
    const isName = /^[\w.-]+$/.test(text) && URL.canParse(`http://${text}`);
    if (isName || isIP(text.replace(/^\[(.*)\]$/, "$1")) !== 0) return text;
    this.#error(name, "must be an address of this machine, or a name of it");
    return fallback;
  }

  /** Reads an origin. A default port may be present or absent. */
  origin(name: string, fallback: string): string {
    const text = this.#get(name) ?? fallback;
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url !== undefined && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`)
      return url.origin;
    this.#error(
      name,
      "must be an http or https origin without a path, such as https://reviews.example",
    );
    return text;
  }

  key(name: string): Uint8Array | undefined {
    const text = this.#get(name);
    const bytes = Buffer.from(text ?? "", "base64");
    if (text === undefined)
      this.#error(name, "is required: 32 random bytes in base64 (openssl rand -base64 32)");
    else if (bytes.length !== MASTER_KEY_BYTES)
      this.#error(name, "must be 32 bytes in base64 (openssl rand -base64 32)");
    return bytes;
  }

  #get(name: string): string | undefined {
    try {
      return settingOf(this.#env, name);
    } catch (error) {
      this.#error(name, error instanceof Error ? error.message : "cannot be read");
      return undefined;
    }
  }

  /**
   * Records the first error of a setting. The message must not contain values, because several settings are secrets.
   */
  #error(name: string, what: string): void {
    if (!this.errors.some((error) => error.startsWith(`${name} `)))
      this.errors.push(`${name} ${what}.`);
  }
}

/**
 * Reads a setting from its variable, or from the file that `NAME_FILE` names, which is how container platforms provide
 * secrets. An empty value counts as absent, because compose files and shells omit a setting in that way. Throws with a
 * reason that completes a sentence beginning with the name.
 */
export function settingOf(env: Env, name: string): string | undefined {
  const given = env[name]?.trim() || undefined;
  const path = env[`${name}_FILE`]?.trim() || undefined;
  if (path === undefined) return given;
  if (given !== undefined) throw new Error(`and ${name}_FILE are both set: leave one of them out`);
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch (error) {
    const { code } = fieldsOf(error);
    const remedy =
      name === WRITTEN_BY_SETUP && code === "ENOENT"
        ? `: \`${commandLine("setup")}\` writes it, into a folder that is there`
        : "";
    throw new Error(`cannot be read from ${name}_FILE (${String(code)})${remedy}`, {
      cause: error,
    });
  }
}

function protocolOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).protocol : undefined;
}

/**
 * Returns whether a URL has a scheme of the web, or a private-use scheme of an app, which contains a dot (RFC 8252,
 * 7.1).
 */
function isReturnAddress(text: string): boolean {
  if (/[\s\\#@]|\p{Cc}/u.test(text) || !URL.canParse(text)) return false;
  const { protocol } = new URL(text);
  return protocol === "https:" || protocol === "http:" || protocol.includes(".");
}

function isNetwork(text: string): boolean {
  try {
    return parseNetworks(text).length === 1;
  } catch {
    return false;
  }
}

/** The options of the ioredis constructor, except the option that changes the type of replies. */
export type RedisSettings = Omit<RedisOptions, "replyMapping">;

const SENTINEL_PORT = 26_379;
/** Time in ms after which a Sentinel that does not answer is skipped and the next one is tried. */
const SENTINEL_TIMEOUT_MS = 1_000;
/** The option of a Redis URL for a file with certificate authorities; redis-py uses the same name. */
const CA_OPTION = "ssl_ca_certs";
const OPTIONS = ["sentinel_username", "sentinel_password", CA_OPTION];

/**
 * Checks a Redis URL. Throws with a reason that contains no secret. The forms are those of redis-py:
 * - `redis://` or `rediss://` names one server.
 * - `redis+sentinel://[user:password@]host[:port],…/master-name[/database]` names Sentinels, which know the current
 *   primary; `rediss+sentinel://` uses TLS for both.
 */
export function checkRedisUrl(text: string): void {
  if (/^redis[s+-]*cluster:/.test(text))
    throw new Error(
      "must not be a Redis Cluster, whose keys are on several servers: name one server, or Sentinels",
    );
  if (sentinelOptions(text) !== undefined) return;
  if (!(/^rediss?:/.test(text) && URL.canParse(text)))
    throw new Error(
      "must be a URL with redis://, rediss://, redis+sentinel:// or rediss+sentinel://",
    );
  serverOptions(text, {});
}

/**
 * Removes the option with the file of certificate authorities from the URL of one server and reads the file. Without
 * the option, `rediss://` trusts the authorities of the system. Throws with a reason that contains no secret.
 */
export function serverOptions(text: string, options: RedisSettings): [string, RedisSettings] {
  const url = URL.parse(text);
  const path = url?.searchParams.get(CA_OPTION) ?? null;
  if (url === null || path === null) return [text, options];
  url.searchParams.delete(CA_OPTION);
  return [url.href, { ...options, tls: tlsWith(path, url.protocol === "rediss:") }];
}

function tlsWith(path: string | null, isTls: boolean): { ca?: string[] } {
  if (path === null) return {};
  if (!isTls) throw new Error(`has ${CA_OPTION}, which needs rediss://`);
  try {
    return { ca: readCertificates(path) };
  } catch (error) {
    throw new Error(`has an ${CA_OPTION} that ${error instanceof Error ? error.message : ""}`, {
      cause: error,
    });
  }
}

/** Parses a URL that names Sentinels. Returns undefined for the URL of one server. */
export function sentinelOptions(text: string): RedisSettings | undefined {
  const [, tls, user, hosts = "", path = "", query] =
    /^redis(s?)\+sentinel:\/\/(?:([^@/?]*)@)?([^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(text) ?? [];
  if (!/^rediss?\+sentinel:/.test(text)) return undefined;
  const [name = "", database = "0", ...rest] = path.split("/");
  if (name === "" || rest.length > 0 || !/^\d{1,5}$/.test(database))
    throw new Error(
      "must name the Sentinels' master, such as redis+sentinel://one:26379,two:26379/mymaster/0",
    );
  const given = new URLSearchParams(query);
  const unknownOption = [...given.keys()].find((key) => !OPTIONS.includes(key));
  if (unknownOption !== undefined) throw new Error(`has options other than ${OPTIONS.join(", ")}`);
  const ca = tlsWith(given.get(CA_OPTION), tls === "s");
  const [username, password] = (user ?? "").split(/:(.*)/s, 2).map(decodeURIComponent);
  return {
    sentinels: hosts.split(",").map(addressOf),
    name: decodeURIComponent(name),
    db: Number(database),
    ...(username && { username }),
    ...(password && { password }),
    ...optional("sentinelUsername", given.get("sentinel_username")),
    ...optional("sentinelPassword", given.get("sentinel_password")),
    ...(tls === "s" && { tls: ca, sentinelTLS: ca, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
  };
}

function optional(name: string, value: string | null): Record<string, string> {
  return value === null ? {} : { [name]: value };
}

function addressOf(text: string): { host: string; port: number } {
  const [, inner, plain = "", port = String(SENTINEL_PORT)] =
    /^(?:\[([\da-f:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = inner ?? plain;
  if (host === "") throw new Error("has a Sentinel that is not host:port");
  return { host, port: Number(port) };
}
