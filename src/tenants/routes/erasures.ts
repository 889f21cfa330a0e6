import { Type } from "@sinclair/typebox";

import * as queries from "../queries/deletions.ts";
import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import { errorResponse } from "../../http/errors.ts";
import type { ValidParts } from "../../http/fields.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import { loads } from "../../http/request-state.ts";
import type { RuleInput, RuleErrors } from "../../http/rules.ts";
import { shown, shownAs } from "../../http/shown.ts";
import { addMs, isoInstant } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { findCompany } from "../actions/companies.ts";
import { existing, type AdminDeps, orNotFound } from "../actions/deps.ts";
import { erasureErrors, findErasure, requestErasure } from "../actions/erasures.ts";
import {
  DeletionBody,
  deletionKeyOf,
  DeletionObject,
  deletionQuery,
  ErasureBody,
  ErasureObject,
  erasureQuery,
  type Deletion,
  ListedDeletionObject,
  type NewDeletion,
} from "../erasure-model.ts";
import type { Company } from "../model.ts";
import { erasuresOf } from "../queries/erasures.ts";
import { administrating, adminRoutesBase, type AdminRouteDeps, changing } from "./base.ts";

/** Defines the routes that request the erasure of a person, and that show erasures (contract 10.8). */
export function erasureRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/erasures")
    .macro(loads("erasure", ({ params }) => findErasure(deps, params["id"])))
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await erasuresOf(deps.db, page);
        return listOf(rows, page, { key: ({ id }) => id, show: shownAs(ErasureObject) });
      },
      {
        access: administrating,
        query: erasureQuery,
        response: { 200: listSchema(ErasureObject) },
        detail: {
          operationId: "listErasures",
          summary: "List erasures, newest first",
          description: "The list does not show who was erased.",
        },
      },
    )
    .get("/:id", ({ erasure }) => shown(ErasureObject, erasure), {
      access: administrating,
      erasure: true,
      response: { 200: ErasureObject },
      detail: {
        operationId: "getErasure",
        summary: "Show an erasure",
        description: "Includes the numbers of processed rows.",
      },
    })
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(
          202,
          shown(ErasureObject, await requestErasure(deps, { principal, requestContext }, body)),
        ),
      {
        access: changing,
        body: ErasureBody,
        rules: ({ body }: RuleInput<typeof ErasureBody>) => erasureErrors(deps, body),
        response: {
          202: ErasureObject,
          409: errorResponse("last_owner", "last_super_admin", "own_user", "user_erased"),
        },
        detail: {
          operationId: "createErasure",
          summary: "Erase a user, or a reviewer by email address or reviews",
          description: "Cannot be undone. A user loses all access immediately.",
        },
      },
    );
}

/** Defines the routes that schedule, show and cancel the deletion of a company with all its rows (contract 10.8). */
export function deletionRoutes(deps: AdminRouteDeps, type: Company["type"]) {
  const [kind, named] = type === "partner" ? ["Partner", "a partner"] : ["Account", "an account"];
  return adminRoutesBase(deps, type === "partner" ? "/partners" : "/accounts")
    .macro(loads("leaving", ({ params }) => findCompany(deps, type, params["id"])))
    .get(
      "/:id/deletion",
      async ({ leaving }) => shown(DeletionObject, await findDeletion(deps, leaving)),
      {
        access: administrating,
        leaving: true,
        response: { 200: DeletionObject },
        detail: {
          operationId: `getDeletionOf${kind}`,
          summary: `Show the scheduled deletion of ${named}`,
          description: "404 if no deletion is scheduled.",
        },
      },
    )
    .post(
      "/:id/deletion",
      async ({ principal, requestContext, leaving, status }) =>
        status(
          202,
          shown(
            DeletionObject,
            await requestDeletion(deps, { principal, requestContext }, leaving),
          ),
        ),
      {
        access: changing,
        leaving: true,
        body: DeletionBody,
        rules: ({
          body,
          leaving,
        }: RuleInput<typeof DeletionBody> & { readonly leaving: Company }) =>
          nameErrors(body, leaving),
        response: { 202: DeletionObject, 409: errorResponse("company_active") },
        detail: {
          operationId: `requestDeletionOf${kind}`,
          summary: `Delete ${named} with everything that belongs to it, after a waiting time`,
          description: "The company must be inactive. Can be cancelled until it begins.",
        },
      },
    )
    .delete(
      "/:id/deletion",
      async ({ principal, requestContext, leaving, status }) => {
        await cancelDeletion(deps, { principal, requestContext }, leaving);
        return status(204, undefined);
      },
      {
        access: changing,
        leaving: true,
        response: { 204: Type.Void(), 409: errorResponse("deletion_running") },
        detail: {
          operationId: `cancelDeletionOf${kind}`,
          summary: `Cancel the deletion of ${named}`,
          description: "The company stays deactivated.",
        },
      },
    );
}

/** Defines the route that lists the scheduled deletions of all companies (contract 10.8). */
export function deletionListRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/deletions").get(
    "",
    async ({ query }) => {
      const page = pageOf(query);
      const rows = await queries.deletionsOf(deps.db, page);
      return listOf(rows, page, { key: deletionKeyOf, show: shownAs(ListedDeletionObject) });
    },
    {
      access: administrating,
      auditedRead: "companies",
      query: deletionQuery,
      response: { 200: listSchema(ListedDeletionObject) },
      detail: {
        operationId: "listDeletions",
        summary: "List scheduled deletions of companies",
        description: "The first due first.",
      },
    },
  );
}

type LeavingCompany = Pick<Company, "id" | "type">;
const DAY_MS = 86_400_000;

async function findDeletion(
  { db }: { readonly db: Db },
  { id }: LeavingCompany,
): Promise<Deletion> {
  return orNotFound(await queries.deletionOf(db, id));
}

function nameErrors(
  { name }: ValidParts<NewDeletion>,
  { name: wanted }: Pick<Company, "name">,
): RuleErrors {
  return {
    name:
      name === undefined || name === wanted ? undefined : "does not match the name of the company",
  };
}

/**
 * Schedules the deletion of a deactivated company; it begins after the waiting time (`deletionWaitDays`). A second
 * request changes nothing and returns the scheduled deletion. The lock on the company makes an activation wait, so that
 * the deletion of an active company is never scheduled.
 */
async function requestDeletion(
  { db, clock, config }: Pick<AdminDeps, "db" | "clock" | "config">,
  { principal: actor, requestContext }: Caller,
  { id, type }: LeavingCompany,
): Promise<Deletion> {
  const now = clock.now();
  const dueAt = addMs(now, config.deletionWaitDays * DAY_MS);
  return db.transaction(async (tx) => {
    if (orNotFound(await queries.lockCompany(tx, id))) throw new Problem("company_active");
    const one = { companyId: id, requestedBy: actor.userId, requestedAt: now, dueAt };
    if (await queries.insertDeletion(tx, one)) {
      const details = { company_id: id, type, due_at: isoInstant(dueAt) };
      const action = "COMPANY_DELETION_REQUESTED";
      await recordAudit(tx, { at: now, action, actor, requestContext, details });
    }
    return existing(await queries.deletionOf(tx, id));
  });
}

/** Cancels a deletion that has not begun. */
async function cancelDeletion(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal: actor, requestContext }: Caller,
  { id, type }: LeavingCompany,
): Promise<void> {
  const now = clock.now();
  await db.transaction(async (tx) => {
    if (!(await queries.deleteDeletion(tx, id))) {
      orNotFound(await queries.deletionOf(tx, id));
      throw new Problem("deletion_running");
    }
    const details = { company_id: id, type };
    const action = "COMPANY_DELETION_CANCELLED";
    await recordAudit(tx, { at: now, action, actor, requestContext, details });
  });
}
