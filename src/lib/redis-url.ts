import type { RedisOptions } from "ioredis";

/** What the constructor takes, whatever shape it gives to answers. */
export type RedisSettings = Omit<RedisOptions, "replyMapping">;

const SENTINEL_PORT = 26_379;
/** A Sentinel that takes longer is passed over for the next one. */
const SENTINEL_TIMEOUT_MS = 1_000;
const OPTIONS = ["sentinel_username", "sentinel_password"];

/**
 * `redis://` or `rediss://` names one server. `redis+sentinel://[user:password@]host[:port],…/master-name[/database]`
 * names Sentinels, which know the server of this moment; `rediss+sentinel://` speaks TLS with both. The form is the one
 * of redis-py's surroundings. Throws with what is wrong, in words fit for everyone.
 */
export function checkRedisUrl(text: string): void {
  if (/^redis[s+-]*cluster:/.test(text))
    throw new Error(
      "must not be a Redis Cluster, whose keys are on several servers: name one server, or Sentinels",
    );
  if (sentinelOptions(text) === undefined && !(/^rediss?:/.test(text) && URL.canParse(text)))
    throw new Error(
      "must be a URL with redis://, rediss://, redis+sentinel:// or rediss+sentinel://",
    );
}

/** Nothing for a URL of one server. */
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
  const strange = [...given.keys()].find((key) => !OPTIONS.includes(key));
  if (strange !== undefined) throw new Error(`has options other than ${OPTIONS.join(" and ")}`);
  const [username, password] = (user ?? "").split(/:(.*)/s, 2).map(decodeURIComponent);
  return {
    sentinels: hosts.split(",").map(addressOf),
    name: decodeURIComponent(name),
    db: Number(database),
    ...(username && { username }),
    ...(password && { password }),
    ...optional("sentinelUsername", given.get("sentinel_username")),
    ...optional("sentinelPassword", given.get("sentinel_password")),
    ...(tls === "s" && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
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
