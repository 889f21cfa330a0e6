import { emailDomain } from "../auth/email.ts";
import type { FieldFaults } from "../http/rules.ts";
import { checkNewWebhookUrl, type EgressPolicy } from "../lib/egress.ts";
import type { Lookup } from "../lib/name-resolver.ts";

/** A domain has two labels at least, because nobody owns a top-level domain. */
const DOMAIN =
  /^(?=.{1,253}$)([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{0,61}[a-z][a-z0-9-]*$/;

export const isDomain = (text: string): boolean => DOMAIN.test(readDomain(text));

/** The domain as DNS writes it. */
function readDomain(text: string): string {
  return emailDomain(`@${text.trim().toLowerCase()}`);
}

/** The domains as DNS writes them, each once. */
export function readDomains(texts: readonly string[]): string[] {
  return [...new Set(texts.map(readDomain))].toSorted();
}

/** An undefined one is malformed, which the schema says already. */
export function domainFaults(texts: readonly (string | undefined)[]): FieldFaults {
  return Object.fromEntries(
    texts.flatMap((one, index) =>
      one === undefined || isDomain(one)
        ? []
        : [[`domains.${index}`, "must be a domain such as example.com"]],
    ),
  );
}

interface IssuerRules {
  readonly config: { readonly egress: EgressPolicy };
  readonly lookup?: Lookup | undefined;
}

/**
 * OpenID Connect Discovery 1.0, 2: an issuer is an https URL without query or fragment; contract 7: on no inner
 * address.
 */
export async function issuerFault(
  { config, lookup }: IssuerRules,
  issuer: string,
): Promise<string | undefined> {
  if (issuer.includes("?")) return "must not contain a query";
  const check = await checkNewWebhookUrl(issuer, config.egress, { lookup });
  return check.kind === "refused" ? check.reason : undefined;
}
