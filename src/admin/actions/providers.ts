import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { SoundParts } from "../../http/fields.ts";
import type { FieldFaults } from "../../http/rules.ts";
import type { Page } from "../../http/list.ts";
import { invalid } from "../../lib/problem.ts";
import { newSecret } from "../../lib/random-secret.ts";
import { providerSecretContext } from "../../providers/secret.ts";
import { SLUG_TAKEN } from "../input.ts";
import type { NewProvider, Provider } from "../model.ts";
import * as queries from "../queries/providers.ts";
import { found, type AdminDeps, type Caller } from "./deps.ts";

export function listProviders({ db }: { readonly db: Db }, page: Page): Promise<Provider[]> {
  return queries.providersOf(db, page);
}

export function findProvider(
  { db }: { readonly db: Db },
  id: string | undefined,
): Promise<Provider> {
  return found(id, (rowId) => queries.providerById(db, rowId));
}

type Deps = Pick<AdminDeps, "db" | "clock" | "box">;
type WithSecret = Provider & { readonly secret: string };

export async function newProviderFaults(
  { db }: { readonly db: Db },
  { slug }: SoundParts<NewProvider>,
): Promise<FieldFaults> {
  const isTaken = slug !== undefined && (await queries.hasSlug(db, slug));
  return { slug: isTaken ? SLUG_TAKEN : undefined };
}

/** A body without faults; only the slug may have been taken since. */
export async function createProvider(
  { db, clock, box }: Deps,
  { principal, call }: Caller,
  { slug, name }: NewProvider,
): Promise<WithSecret> {
  const now = clock.now();
  const secret = newSecret();
  const sealed = box.seal(secret, providerSecretContext(slug));
  try {
    return await db.transaction(async (tx) => {
      const id = await queries.insertProvider(tx, { slug, name }, sealed);
      const details = { provider: slug };
      const action = "PROVIDER_CREATED";
      await recordAudit(tx, { at: now, action, actor: principal, call, details });
      return { id, slug, name, secret };
    });
  } catch (error) {
    if (!queries.isSlugTaken(error)) throw error;
    throw invalid({ slug: [SLUG_TAKEN] });
  }
}

/** The one until now stops working at once: what it has signed is refused. */
export async function rotateProviderSecret(
  { db, clock, box }: Deps,
  { principal, call }: Caller,
  provider: Provider,
): Promise<WithSecret> {
  const now = clock.now();
  const secret = newSecret();
  await db.transaction(async (tx) => {
    const { id, slug } = provider;
    await queries.replaceSecret(tx, id, box.seal(secret, providerSecretContext(slug)));
    const action = "PROVIDER_SECRET_ROTATED";
    await recordAudit(tx, { at: now, action, actor: principal, call, details: { provider: slug } });
  });
  return { ...provider, secret };
}
