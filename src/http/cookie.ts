import type { Config } from "../lib/config.ts";

interface Options {
  /** The name without the prefix `__Host-`. */
  readonly name: string;
  readonly maxAgeS: number;
  /** The format of the values; a cookie with another value is ignored. */
  readonly format: RegExp;
}

/**
 * A cookie that only this host can set and no script can read. On https its name has the prefix `__Host-`, so that
 * other subdomains cannot set it. `SameSite` is `Lax` and not `Strict`, because the browser must also send the cookie
 * when another site redirects the user to this service.
 */
export class HostCookie {
  readonly #name: string;
  readonly #format: RegExp;
  readonly #attributes: string;

  constructor({ serverRoot }: Pick<Config, "serverRoot">, { name, maxAgeS, format }: Options) {
    const isSecure = serverRoot.startsWith("https:");
    this.#name = isSecure ? `__Host-${name}` : name;
    this.#format = format;
    const secure = isSecure ? "; Secure" : "";
    this.#attributes = `Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${secure}`;
  }

  /** Returns the value of the cookie in a request; undefined if there is none, or more than one. */
  read(headers: Headers): string | undefined {
    const pairs = (headers.get("cookie") ?? "").split(/; */);
    const own = pairs.filter((pair) => pair.startsWith(`${this.#name}=`));
    const value = own[0]?.slice(this.#name.length + 1) ?? "";
    return own.length === 1 && this.#format.test(value) ? value : undefined;
  }

  /** Returns the value of a `Set-Cookie` header. */
  write(value: string): string {
    return `${this.#name}=${value}; ${this.#attributes}`;
  }
}
