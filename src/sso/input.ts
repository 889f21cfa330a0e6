import { emailDomain } from "../auth/email.ts";
import type { FieldFaults } from "../http/rules.ts";
import { checkNewWebhookUrl, type EgressPolicy, type Lookup } from "../lib/egress.ts";

/** Two labels at least: nobody owns a top-level domain. */
const DOMAIN =
  /^(?=.{1,253}$)([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{0,61}[a-z][a-z0-9-]*$/;

export const isDomain = (text: string): boolean => DOMAIN.test(readDomain(text));

/** As DNS writes it. */
export function readDomain(text: string): string {
  return emailDomain(`@${text.trim().toLowerCase()}`);
}

/** As DNS writes them, each once. */
export function readDomains(texts: readonly string[]): string[] {
  return [...new Set(texts.map(readDomain))].toSorted();
}

/** What is undefined has another fault already. */
export function domainFaults(texts: readonly (string | undefined)[]): FieldFaults {
  return Object.fromEntries(
    texts.flatMap((one, index) =>
      one === undefined || isDomain(one)
        ? []
        : [[`domains.${index}`, "must be a domain such as example.com"]],
    ),
  );
}

interface Rules {
  readonly config: { readonly egress: EgressPolicy };
  readonly lookup?: Lookup | undefined;
}

/** OpenID Connect Discovery 1.0, 2: https, without query or fragment; and never an address inside (decisions.md 4). */
export async function issuerFault(
  { config, lookup }: Rules,
  issuer: string,
): Promise<string | undefined> {
  if (issuer.includes("?")) return "must not contain a query";
  const check = await checkNewWebhookUrl(issuer, config.egress, lookup && { lookup });
  return check.kind === "refused" ? check.reason : undefined;
}
