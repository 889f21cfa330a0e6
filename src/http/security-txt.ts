import { Elysia } from "elysia";

import { addMs, type Clock, isoInstant } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";

/** The time in milliseconds after which a copy of the file is outdated. RFC 9116 advises less than a year. */
const LIFE_MS = 180 * 86_400_000;

interface SecurityTxtDeps {
  readonly clock: Clock;
  readonly config: Pick<Config, "securityTxt" | "serverRoot">;
}

/** Serves `/.well-known/security.txt` (RFC 9116), which says where to report a vulnerability. Without a contact, it is 404. */
export function securityTxt({
  clock,
  config: { securityTxt: settings, serverRoot },
}: SecurityTxtDeps) {
  const app = new Elysia();
  if (settings === undefined) return app;
  const { contacts, policy } = settings;
  const path = "/.well-known/security.txt";
  return app.get(
    path,
    () => {
      const fields = [
        ...contacts.map((one) => `Contact: ${one}`),
        `Expires: ${isoInstant(addMs(clock.now(), LIFE_MS))}`,
        `Canonical: ${serverRoot}${path}`,
        ...(policy === undefined ? [] : [`Policy: ${policy}`]),
      ];
      const headers = { "Content-Type": "text/plain; charset=utf-8" };
      return new Response(`${fields.join("\n")}\n`, { headers });
    },
    { detail: { hide: true } },
  );
}
