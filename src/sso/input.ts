import { emailDomain } from "../auth/email.ts";
import { checkNewWebhookUrl, type EgressPolicy, type Lookup } from "../lib/egress.ts";
import { invalid, type FieldErrors } from "../lib/problem.ts";

interface Rules {
  readonly config: { readonly egress: EgressPolicy };
  readonly lookup?: Lookup | undefined;
}

interface Settings {
  readonly issuer?: string | undefined;
  readonly domains?: readonly string[] | undefined;
}

/** Two labels at least: nobody owns a top-level domain. */
const DOMAIN =
  /^(?=.{1,253}$)([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{0,61}[a-z][a-z0-9-]*$/;

/** Answers the domains as DNS writes them, each once; names every bad field at once. */
export async function readSettings(
  { config, lookup }: Rules,
  { issuer, domains }: Settings,
): Promise<{ domains: string[] | undefined }> {
  const errors: FieldErrors = {};
  const fault = issuer === undefined ? undefined : await issuerFault({ config, lookup }, issuer);
  if (fault !== undefined) errors["issuer"] = [fault];
  const read = domains?.map((one) => emailDomain(`@${one.trim().toLowerCase()}`));
  for (const [index, domain] of (read ?? []).entries())
    if (!DOMAIN.test(domain)) errors[`domains.${index}`] = ["must be a domain such as example.com"];
  if (Object.keys(errors).length > 0) throw invalid(errors);
  return { domains: read && [...new Set(read)].toSorted() };
}

/** OpenID Connect Discovery 1.0, 2: https, without query or fragment; and never an address inside (decisions.md 4). */
async function issuerFault({ config, lookup }: Rules, issuer: string): Promise<string | undefined> {
  if (issuer.includes("?")) return "must not contain a query";
  const check = await checkNewWebhookUrl(issuer, config.egress, lookup && { lookup });
  return check.kind === "refused" ? check.reason : undefined;
}
