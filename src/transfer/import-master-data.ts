import type { Tx } from "../../db/client.ts";
import { parseInstant } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import type { SecretBox } from "../lib/secrets.ts";
import { newSecret } from "../lib/secrets.ts";
import { providerSecretContext } from "../intake/provider-model.ts";
import { DEFAULT_COLOR } from "../tenants/model.ts";
import { byKey, Directory, fault, type Fault, type Outcome, unknown } from "./directory.ts";
import type { LineOf } from "./format.ts";
import * as queries from "./queries/import.ts";

/** The dependencies of the functions that import the lines of one chunk. A chunk is imported in one transaction. */
export interface ImportDeps {
  readonly tx: Tx;
  readonly box: SecretBox;
  readonly config: Pick<Config, "batchHourMs" | "egress">;
  readonly now: Date;
}

export const present = (values: readonly (number | string | null | undefined)[]) =>
  values.filter((one) => one != null);
/**
 * Returns the ids and external ids that lines give to their own records, without those of the records to which they
 * refer.
 */
export const ownKeys = (lines: readonly { id?: number; external_id?: string }[]) =>
  lines.flatMap(({ id, external_id: externalId }) => present([id, externalId]));

/**
 * Returns the columns of the id and the external id for the record of a line. Without an id in the line, PostgreSQL
 * assigns one.
 */
export const given = ({ id, external_id: externalId }: { id?: number; external_id?: string }) => ({
  ...(id !== undefined && { id }),
  externalId: externalId ?? null,
});

export async function importPlans({ tx }: ImportDeps, lines: readonly LineOf<"plan">[]) {
  const known = await queries.plansBy(tx, [...ownKeys(lines), ...lines.map(({ name }) => name)]);
  const directory = new Directory(
    "plan",
    known.map(({ id, name }) => ({ id, name, ...named("name", name) })),
  );
  const values: Parameters<typeof queries.insertPlans>[1][number][] = [];
  const outcomes = lines.map(({ id, name, features = [] }) =>
    directory.settle({ id, name, ...named("name", name) }, () => {
      values.push({ ...(id !== undefined && { id }), name, features: [...features] });
      return undefined;
    }),
  );
  await queries.insertPlans(tx, values);
  return outcomes;
}

/**
 * Returns the identity of a record that is known by a unique value. The value never changes, so it is also the origin.
 */
export const named = (field: string, value: string) => ({
  unique: { field, value },
  origin: value,
});

export function importPartners(deps: ImportDeps, lines: readonly LineOf<"partner">[]) {
  return importCompanies(deps, "partner", lines, async () => {
    const domains = lines.flatMap(({ white_label: one }) => one?.domain ?? []);
    const taken = new Set(
      (await queries.domainsTaken(deps.tx, domains)).map(({ domain }) => domain),
    );
    return ({ white_label: whiteLabel, name }) => {
      if (whiteLabel !== undefined && taken.has(whiteLabel.domain))
        return fault("white_label.domain", "is the domain of another partner");
      if (whiteLabel !== undefined) taken.add(whiteLabel.domain);
      return {
        origin: name,
        columns: {
          whiteLabelEnabled: whiteLabel !== undefined,
          brandName: whiteLabel?.brand_name ?? null,
          whiteLabelDomain: whiteLabel?.domain ?? null,
        },
      };
    };
  });
}

export function importAccounts(deps: ImportDeps, lines: readonly LineOf<"account">[]) {
  return importCompanies(deps, "account", lines, async () => {
    const partners = byKey(
      await queries.companiesBy(
        deps.tx,
        "partner",
        lines.map((one) => one.partner_id),
      ),
    );
    const plans = byKey(
      await queries.plansBy(
        deps.tx,
        lines.map((one) => one.plan_id),
      ),
    );
    return (line) => {
      const [partner, plan] = [partners.get(line.partner_id), plans.get(line.plan_id)];
      if (partner === undefined) return unknown("partner_id", "partner");
      if (plan === undefined) return unknown("plan_id", "plan");
      const primaryColor = line.primary_color ?? partner.primaryColor;
      const columns = { partnerId: partner.id, planId: plan.id, primaryColor };
      return { origin: String(partner.id), columns };
    };
  });
}

type CompanyLine = LineOf<"partner"> & LineOf<"account">;
type CompanyColumns = Partial<Parameters<typeof queries.insertCompanies>[1][number]>;

/**
 * Imports partners or accounts. `prepare` returns the function that determines the columns of a line that only this
 * type has.
 */
async function importCompanies<
  L extends Omit<CompanyLine, "white_label" | "partner_id" | "plan_id">,
>(
  { tx, now }: ImportDeps,
  type: "partner" | "account",
  lines: readonly L[],
  prepare: () => Promise<(line: L) => Fault | { origin: string; columns: CompanyColumns }>,
): Promise<Outcome[]> {
  const columnsOf = await prepare();
  const known = await queries.companiesBy(tx, type, ownKeys(lines));
  const others = await queries.namedCompanies(
    tx,
    lines.flatMap(({ id }) => id ?? []),
  );
  const directory = new Directory(type, [
    // `others` contains companies of both types. Those of this type follow in `known` and replace the entries with the
    // same id.
    ...others.map((one) => ({ ...one, origin: "" })),
    ...known.map((one) => ({
      ...one,
      origin: type === "partner" ? one.name : String(one.partnerId),
    })),
  ]);
  const values: Parameters<typeof queries.insertCompanies>[1][number][] = [];
  const outcomes = lines.map((line): Outcome => {
    const found = columnsOf(line);
    if ("field" in found) return found;
    return directory.settle({ ...given(line), name: line.name, origin: found.origin }, () => {
      values.push({
        ...given(line),
        type,
        name: line.name,
        isActive: line.is_active ?? true,
        primaryColor: line.primary_color ?? DEFAULT_COLOR,
        logoUrl: line.logo_url ?? null,
        createdAt: parseInstant(line.created_at) ?? now,
        ...found.columns,
      });
      return undefined;
    });
  });
  await queries.insertCompanies(tx, values);
  return outcomes;
}

export async function importStores({ tx }: ImportDeps, lines: readonly LineOf<"store">[]) {
  const accounts = byKey(
    await queries.companiesBy(
      tx,
      "account",
      lines.map((one) => one.account_id),
    ),
  );
  const known = await queries.storesBy(tx, ownKeys(lines));
  const directory = new Directory(
    "store",
    known.map((one) => ({ ...one, origin: String(one.accountId) })),
  );
  const values: Parameters<typeof queries.insertStores>[1][number][] = [];
  const outcomes = lines.map((line) => {
    const account = accounts.get(line.account_id);
    if (account === undefined) return unknown("account_id", "account");
    return directory.settle({ ...given(line), name: line.name, origin: String(account.id) }, () => {
      const partnerId = account.partnerId ?? 0;
      values.push({ ...given(line), accountId: account.id, partnerId, name: line.name });
      return undefined;
    });
  });
  await queries.insertStores(tx, values);
  return outcomes;
}

export async function importSites(
  { tx, box }: ImportDeps,
  lines: readonly LineOf<"review_site">[],
) {
  const known = await queries.sitesBy(
    tx,
    lines.flatMap(({ id, slug }) => present([id, slug])),
  );
  const directory = new Directory(
    "review site",
    known.map(({ id, slug }) => ({ id, name: slug, ...named("slug", slug) })),
  );
  const values: Parameters<typeof queries.insertSites>[1][number][] = [];
  const outcomes = lines.map(({ id, slug, name, secret = newSecret() }) =>
    directory.settle({ id, name: slug, ...named("slug", slug) }, () => {
      const sealedSecret = box.seal(secret, providerSecretContext(slug));
      values.push({ ...(id !== undefined && { id }), slug, name, sealedSecret });
      return undefined;
    }),
  );
  await queries.insertSites(tx, values);
  return outcomes;
}

const CONNECTED_AXIS = { connected: true, error_code: null };

const connectionOf = (storeId: number, siteId: number) =>
  named("review_site", `${storeId} ${siteId}`);

export async function importConnections(
  { tx }: ImportDeps,
  lines: readonly LineOf<"connection">[],
) {
  const stores = byKey(
    await queries.storesBy(
      tx,
      lines.map((one) => one.store_id),
    ),
  );
  const sites = new Map(
    (
      await queries.sitesBy(
        tx,
        lines.map((one) => one.review_site),
      )
    ).map((one) => [one.slug, one]),
  );
  const storeIds = [...new Set([...stores.values()].map(({ id }) => id))];
  const known = await queries.connectionsBy(tx, ownKeys(lines), storeIds);
  const directory = new Directory(
    "connection",
    known.map((one) => ({ ...one, ...connectionOf(one.storeId, one.reviewSiteId) })),
  );
  const values: Parameters<typeof queries.insertConnections>[1][number][] = [];
  const outcomes = lines.map((line) => {
    const [store, site] = [stores.get(line.store_id), sites.get(line.review_site)];
    if (store === undefined) return unknown("store_id", "store");
    if (site === undefined) return unknown("review_site", "review site");
    const { pull = CONNECTED_AXIS, post = CONNECTED_AXIS } = line;
    return directory.settle({ ...given(line), ...connectionOf(store.id, site.id) }, () => {
      values.push({
        ...given(line),
        storeId: store.id,
        reviewSiteId: site.id,
        accountId: store.accountId,
        partnerId: store.partnerId,
        pullConnected: pull.connected,
        pullErrorCode: pull.error_code,
        postConnected: post.connected,
        postErrorCode: post.error_code,
      });
      return undefined;
    });
  });
  await queries.insertConnections(tx, values);
  return outcomes;
}
