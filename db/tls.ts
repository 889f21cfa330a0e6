import { readFileSync } from "node:fs";

/** The parameters of a database address that say how connections are encrypted, as libpq names them. */
const PARAMETERS = ["sslmode", "sslrootcert"];

interface DatabaseTls {
  /** The address without the parameters of TLS, which the driver would send to the server as settings. */
  readonly url: string;
  /** The option `ssl` of the driver; absent without TLS. */
  readonly ssl?: "prefer" | "require" | { readonly ca?: string };
}

/**
 * Reads `sslmode` and `sslrootcert` of a database address. `verify-full` checks the certificate and the name of the
 * server, with the authorities of `sslrootcert` or else of the system.
 */
export function readTls(address: string): DatabaseTls {
  const [base = "", query = ""] = address.split(/\?(.*)/s);
  const given = new URLSearchParams(query);
  const [mode, ca] = PARAMETERS.map((name) => given.get(name));
  const rest = query.split("&").filter((one) => !PARAMETERS.includes(one.split("=")[0] ?? ""));
  const url = rest.join("") === "" ? base : `${base}?${rest.join("&")}`;
  if (mode == null || mode === "disable") return { url };
  if (mode === "prefer" || mode === "require") return { url, ssl: mode };
  return { url, ssl: ca == null || ca === "system" ? {} : { ca: readFileSync(ca, "utf8") } };
}
