// Names settings that weaken a running installation. Several are made for the demo, for load tests or for a first try.
import { statSync } from "node:fs";

import type { Config } from "../../lib/config.ts";
import { type Network, parseNetworks } from "../../lib/egress.ts";
import type { Env } from "../../lib/settings-reader.ts";
import { advice, fault, type Finding } from "./finding.ts";

/** The prefix of `fc00::/7`, the widest network that an installation can own. */
const WIDEST_BITS = 7;
/** The addresses of this machine, and those at which clouds serve metadata and credentials. */
const OWN_MACHINE = parseNetworks("127.0.0.0/8 ::1/128 169.254.0.0/16 fe80::/10 168.63.129.16");
/** Permission to write for the group, and any permission for all others. */
const WEAK_MODE = 0o027;

type Risky = Pick<Config, "egress" | "rateLimits" | "trustedProxies">;

/** A setting that voids a protection is a fault; one that weakens it is advice. */
export function riskySettings({ egress, rateLimits, trustedProxies }: Risky, env: Env): Finding[] {
  const findings: Finding[] = [];
  if (egress.allowedNetworks.some(isTooWide))
    findings.push(
      fault(
        "WEBHOOK_ALLOWED_NETWORKS allows every address",
        "Name only networks of your receivers: a partner can otherwise send requests to every machine that this one reaches.",
      ),
    );
  else if (egress.allowedNetworks.some((one) => OWN_MACHINE.some((own) => overlap(one, own))))
    findings.push(
      advice(
        "WEBHOOK_ALLOWED_NETWORKS allows this machine, or a cloud's metadata",
        "Leave these networks out unless you try a receiver here: partners can send requests to them.",
      ),
    );
  if (egress.allowHttp)
    findings.push(
      advice(
        "WEBHOOK_ALLOW_HTTP allows receivers without TLS",
        "Leave it out: such deliveries can be read and changed on their way.",
      ),
    );
  if (trustedProxies.flatMap(parseNetworks).some(isTooWide))
    findings.push(
      fault(
        "TRUSTED_PROXIES trusts every address",
        "Name only your proxies: a client can otherwise choose the address that rate limits and the audit log use.",
      ),
    );
  if (!rateLimits)
    findings.push(
      advice(
        "RATE_LIMITS is off",
        "Leave it out, unless a proxy limits the requests: passwords can be guessed at any rate.",
      ),
    );
  return [...findings, ...["MASTER_KEY_FILE", "MASTER_KEY_PREVIOUS_FILE"].flatMap(weakModeOf(env))];
}

function isTooWide({ bits }: Network): boolean {
  return bits.length < WIDEST_BITS;
}

function overlap(one: Network, other: Network): boolean {
  if (one.family !== other.family) return false;
  return one.bits.startsWith(other.bits) || other.bits.startsWith(one.bits);
}

function weakModeOf(env: Env): (name: string) => Finding[] {
  return (name) => {
    const path = env[name]?.trim();
    const mode = path ? statSync(path, { throwIfNoEntry: false })?.mode : undefined;
    if (mode === undefined || (mode & WEAK_MODE) === 0) return [];
    const shown = (mode & 0o777).toString(8).padStart(4, "0");
    return [
      advice(
        `the file of ${name} has the mode ${shown}`,
        "Give it the mode 0400 and the user of the service: the key opens every stored secret.",
      ),
    ];
  };
}
