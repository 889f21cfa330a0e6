import { Type, type Static } from "@sinclair/typebox";

import { accountQuery, ROLES_OF, UserBody, userQuery } from "./model.ts";
import { auditQuery } from "../auth/audit-model.ts";
import { literals } from "../http/principal.ts";

const closed = { additionalProperties: false };
const role = literals(ROLES_OF.partner);
const { email, name } = UserBody.properties;

/** Whoever joins the team is invited: a partner sets nobody's password. */
export const TeammateBody = Type.Object({ email, name, role }, { ...closed, title: "NewTeammate" });
export type NewTeammate = Static<typeof TeammateBody>;

export const RoleBody = Type.Object({ role }, { ...closed, title: "TeamRole" });

export const teamQuery = Type.Pick(userQuery, ["limit", "cursor", "is_active"]);
export const ownAccountQuery = Type.Omit(accountQuery, ["partner_id"]);
/** `company_id` is the partner or one of its accounts; any other finds no rows. */
export const ownAuditQuery = auditQuery;
