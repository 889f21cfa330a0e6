import { eq, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import { companies, users } from "./schema/companies.ts";

/** The partner above an account; a join to it is a left join, because other companies have none. */
export const partners = alias(companies, "partners");

export const isPartnerOfCompany = eq(partners.id, companies.partnerId);

/** The company and the partner above it are active: nobody of them signs in otherwise. */
export const isTenantActive =
  sql`(${companies.isActive} and coalesce(${partners.isActive}, true))`.mapWith(companies.isActive);

/** The same of a user of the company. */
export const isUserActive = sql`(${users.isActive} and ${isTenantActive})`.mapWith(users.isActive);
