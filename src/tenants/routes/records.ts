import { type TObject, Type } from "@sinclair/typebox";

import type { TenantData } from "../../auth/access/tenant-reads.ts";
import type { Access } from "../../http/access.ts";
import { errorResponse } from "../../http/errors.ts";
import { loads } from "../../http/request-state.ts";
import {
  type RuleErrors,
  type RuleInput,
  throwFieldErrors,
  toFieldErrors,
} from "../../http/rules.ts";
import type { Caller } from "../../http/principal.ts";
import { Problem, type ProblemCode } from "../../lib/problem.ts";
import { isExternalIdTaken } from "../actions/records.ts";
import { externalId as externalIdSchema } from "../model.ts";
import { administrating, adminRoutesBase, type AdminRouteDeps, changing } from "./base.ts";

type ShownRecord = Readonly<Record<string, unknown>>;

/** A record that a path identifies: the form in which the API shows it, and the functions that change and delete it. */
export interface FoundRecord {
  readonly shown: ShownRecord;
  /** The fields that can be set only in a new record, with their values in this record. */
  readonly fixed?: Readonly<Record<string, unknown>>;
  changeErrors?(body: object): Promise<RuleErrors>;
  /** Changes the fields in the body, and returns the changed record. */
  change(caller: Caller, body: object): Promise<ShownRecord>;
  remove(caller: Caller): Promise<void>;
}

/** A kind of master data: partners, accounts, plans, stores, users, providers or connections. */
export interface RecordKind<P extends `/${string}`> {
  readonly path: P;
  /** The name of a record, such as "a partner". `operation` is its name in operation ids, such as `getPartner`. */
  readonly name: string;
  readonly operation: string;
  readonly object: TObject;
  readonly changes: TObject;
  /** The kind of tenant data that a record belongs to; null for data of the platform. */
  readonly data: TenantData | null;
  /** The codes of the conflicts because of which a change may be refused. */
  readonly conflicts?: readonly ProblemCode[];
  /** Access rule for changes. A deletion always requires the user in person. */
  readonly access: Access;
  find(id: string | undefined): Promise<FoundRecord>;
}

/** A kind of master data whose records can have external ids of the platform. */
export interface SyncedKind<P extends `/${string}`> extends RecordKind<P> {
  /** The schema of the fields of a new record, without its external id. */
  readonly body: TObject;
  findExternal(externalId: string): Promise<FoundRecord | undefined>;
  createErrors(body: object): Promise<RuleErrors>;
  /** Creates a record from a valid body with its external id. */
  create(caller: Caller, body: object): Promise<ShownRecord>;
}

/** Defines the route that shows one record (contract 10.6). */
export function showRoute<const P extends `/${string}`>(deps: AdminRouteDeps, kind: RecordKind<P>) {
  return recordBase(deps, kind).get("/:id", ({ record }) => record.shown, {
    access: administrating,
    auditedRead: kind.data,
    record: true,
    response: { 200: kind.object },
    detail: {
      operationId: `get${kind.operation}`,
      summary: `Show ${kind.name}`,
      description: "Same fields as in the list.",
    },
  });
}

function recordBase<const P extends `/${string}`>(deps: AdminRouteDeps, kind: RecordKind<P>) {
  return adminRoutesBase(deps, kind.path).macro(
    loads("record", ({ params }) => kind.find(params["id"])),
  );
}

/** Defines the routes that change and delete one record (contract 10.6). */
export function changeRoutes<const P extends `/${string}`>(
  deps: AdminRouteDeps,
  kind: RecordKind<P>,
) {
  return recordBase(deps, kind)
    .patch(
      "/:id",
      ({ principal, requestContext, record, body }) =>
        record.change({ principal, requestContext }, body),
      {
        access: kind.access,
        record: true,
        body: kind.changes,
        rules: ({ body, record }: RuleInput<TObject> & { readonly record: FoundRecord }) =>
          record.changeErrors?.(body) ?? {},
        response: {
          200: kind.object,
          ...(kind.conflicts && { 409: errorResponse(...kind.conflicts) }),
        },
        detail: {
          operationId: `change${kind.operation}`,
          summary: `Change ${kind.name}`,
          description: "Absent fields stay.",
        },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, record, status }) => {
        await record.remove({ principal, requestContext });
        return status(204, undefined);
      },
      {
        access: changing,
        record: true,
        response: { 204: Type.Void(), 409: errorResponse("in_use") },
        detail: {
          operationId: `delete${kind.operation}`,
          summary: `Delete ${kind.name}`,
          description: "Refused while others depend on it.",
        },
      },
    );
}

/** Defines the route that creates or changes the record with an external id (contract 10.6). */
export function syncedRoutes<const P extends `/${string}`>(
  deps: AdminRouteDeps,
  kind: SyncedKind<P>,
) {
  return adminRoutesBase(deps, kind.path)
    .macro(loads("external", ({ params }) => findExternal(kind, params["externalId"])))
    .put(
      "/external/:externalId",
      async ({ principal, requestContext, external, body, status }) => {
        const { isNew, shown } = await put(kind, external, { principal, requestContext }, body);
        return isNew ? status(201, shown) : status(200, shown);
      },
      {
        access: kind.access,
        external: true,
        body: kind.body,
        rules: ({ body, external }: RuleInput<TObject> & { readonly external: ExternalRecord }) =>
          putErrors(kind, external, body),
        response: { 200: kind.object, 201: kind.object },
        detail: {
          operationId: `put${kind.operation}`,
          summary: `Create or change ${kind.name} by the platform's own id`,
          description: "Absent optional fields stay.",
        },
      },
    );
}

/** The record with an external id, if there is one. */
interface ExternalRecord {
  readonly externalId: string;
  readonly found: FoundRecord | undefined;
}

const EXTERNAL_ID = new RegExp(externalIdSchema.pattern ?? "", "u");

async function findExternal<P extends `/${string}`>(
  kind: SyncedKind<P>,
  externalId = "",
): Promise<ExternalRecord> {
  if (!EXTERNAL_ID.test(externalId)) throw new Problem("not_found");
  return { externalId, found: await kind.findExternal(externalId) };
}

async function putErrors<P extends `/${string}`>(
  kind: SyncedKind<P>,
  { found }: ExternalRecord,
  body: object,
): Promise<RuleErrors> {
  if (found === undefined) return kind.createErrors(body);
  return { ...(await found.changeErrors?.(changesOf(kind, body))), ...fixedErrors(found, body) };
}

function fixedErrors({ fixed = {} }: FoundRecord, body: object): RuleErrors {
  const given = new Map<string, unknown>(Object.entries(body));
  return Object.fromEntries(
    Object.entries(fixed).map(([field, value]) => [
      field,
      given.has(field) && given.get(field) !== value
        ? `cannot be changed and is ${JSON.stringify(value)}`
        : undefined,
    ]),
  );
}

const changesOf = <P extends `/${string}`>({ changes }: SyncedKind<P>, body: object): object =>
  Object.fromEntries(Object.entries(body).filter(([field]) => field in changes.properties));

async function put<P extends `/${string}`>(
  kind: SyncedKind<P>,
  { externalId, found }: ExternalRecord,
  caller: Caller,
  body: object,
): Promise<{ readonly isNew: boolean; readonly shown: ShownRecord }> {
  if (found !== undefined)
    return { isNew: false, shown: await found.change(caller, changesOf(kind, body)) };
  try {
    return { isNew: true, shown: await kind.create(caller, { ...body, external_id: externalId }) };
  } catch (error) {
    // If another request has created a record with the external id since the look-up, this request changes that record.
    const other = isExternalIdTaken(error) ? await kind.findExternal(externalId) : undefined;
    if (other === undefined) throw error;
    throwFieldErrors(toFieldErrors(await putErrors(kind, { externalId, found: other }, body)));
    return { isNew: false, shown: await other.change(caller, changesOf(kind, body)) };
  }
}
