import { and, eq } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { prepared } from "../../../db/session.ts";
import { companies } from "../../../db/schema/companies.ts";
import { ssoConnections, ssoDomains } from "../../../db/schema/sign-in.ts";
import { isPartnerOfCompany, isTenantActive, partners } from "../../../db/tenancy.ts";

interface DomainPolicy {
  readonly connectionId: string;
  readonly passwordLogin: boolean;
}

const domainPolicies = prepared({ domain: ssoDomains.domain }, (db, { domain }) =>
  db
    .select({ connectionId: ssoConnections.id, passwordLogin: ssoConnections.passwordLogin })
    .from(ssoDomains)
    .innerJoin(ssoConnections, eq(ssoConnections.id, ssoDomains.connectionId))
    .innerJoin(companies, eq(companies.id, ssoConnections.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(eq(ssoDomains.domain, domain), ssoConnections.isActive, isTenantActive)),
);

/** How the addresses of a domain sign in; undefined: with a password, like everybody else's. */
export async function findDomainPolicy(
  db: DbOrTx,
  domain: string,
): Promise<DomainPolicy | undefined> {
  const [policy] = await domainPolicies(db, { domain });
  return policy;
}
