import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { SoundParts } from "../../http/fields.ts";
import type { FieldFaults } from "../../http/rules.ts";
import type { Page } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import { invalid } from "../../lib/problem.ts";
import { newSecret } from "../../lib/random-secret.ts";
import { providerSecretContext } from "../../providers/model.ts";
import { SLUG_TAKEN } from "../input.ts";
import type { NewProvider, Provider } from "../model.ts";
import * as queries from "../queries/providers.ts";
import { findRow, type AdminDeps } from "./deps.ts";

export function listProviders({ db }: { readonly db: Db }, page: Page): Promise<Provider[]> {
  return queries.providersOf(db, page);
}

export function findProvider(
  { db }: { readonly db: Db },
  id: string | undefined,
): Promise<Provider> {
  return findRow(id, (rowId) => queries.providerById(db, rowId));
}

type SealingDeps = Pick<AdminDeps, "db" | "clock" | "box">;
type ProviderAndSecret = Provider & { readonly secret: string };

export async function newProviderFaults(
  { db }: { readonly db: Db },
  { slug }: SoundParts<NewProvider>,
): Promise<FieldFaults> {
  const isTaken = slug !== undefined && (await queries.hasSlug(db, slug));
  return { slug: isTaken ? SLUG_TAKEN : undefined };
}

/** The body has passed `newProviderFaults`; a slug that was taken since then is a 422. */
export async function createProvider(
  { db, clock, box }: SealingDeps,
  { principal, call }: Caller,
  { slug, name }: NewProvider,
): Promise<ProviderAndSecret> {
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

/** The secret until now stops working at once: a report that was signed with it is refused from the commit on. */
export async function rotateProviderSecret(
  { db, clock, box }: SealingDeps,
  { principal, call }: Caller,
  provider: Provider,
): Promise<ProviderAndSecret> {
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
