import { queryOptions, useQuery } from "@tanstack/react-query";

import { allPages, answerOf, type ApiClient, pageAt, type QueryOf } from "../../api/client.ts";
import { recordOf } from "../../api/records.ts";
import { useApi } from "../../session/session.tsx";
import { sentence } from "../../ui/format.ts";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

const STORES = ["stores"];

type StoreFilter = QueryOf<ApiClient["admin"]["stores"]["get"]>;

export const storesOptions = (api: ApiClient, filter: StoreFilter) =>
  listOptions([...STORES, "list", filter], (cursor) =>
    answerOf(api.admin.stores.get({ query: { ...filter, ...pageAt(cursor) } })),
  );

export type Store = RowOf<typeof storesOptions>;

export const storeOptions = (api: ApiClient, id: number) =>
  queryOptions({
    queryKey: [...STORES, id],
    queryFn: () => recordOf<Store>(api, "stores", id).read(),
  });

/** Reads all stores of an account, as choices of a select. */
export const accountStoresOptions = (api: ApiClient, accountId: number) =>
  queryOptions({
    queryKey: [...STORES, "of", accountId],
    queryFn: () =>
      allPages((cursor) =>
        answerOf(api.admin.stores.get({ query: { account_id: accountId, ...pageAt(cursor) } })),
      ),
  });

/** Reads the providers, of which a platform has at most a few dozen. */
export const allProvidersOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["providers", "all"],
    queryFn: () =>
      allPages((cursor) => answerOf(api.admin.providers.get({ query: pageAt(cursor) }))),
  });

/** Returns a function that maps the slug of a review site, such as `google`, to its name. */
export function useSiteName(): (slug: string) => string {
  const { data } = useQuery(allProvidersOptions(useApi()));
  return (slug) => data?.find((one) => one.slug === slug)?.name ?? sentence(slug);
}

/** Connection of a store to a review site. */
export type StoreSite = Store["review_sites"][number];

/** Values of the form for a store before they are sent. An empty external id means that there is none. */
export interface StoreDraft {
  readonly account_id: number | undefined;
  readonly name: string;
  readonly external_id: string;
}

/** Returns the values of the form for a store, or those of an empty form, which proposes an account. */
export const storeDraft = (
  store: Store | undefined,
  accountId: number | undefined,
): StoreDraft => ({
  account_id: store?.account_id ?? accountId,
  name: store?.name ?? "",
  external_id: store?.external_id ?? "",
});

/** Requests that create, change and delete stores and their connections to review sites. */
export function useStoreActions() {
  const api = useApi();
  const { stores, "store-review-sites": sites } = api.admin;
  const { inBackground, andRead } = useRefresh(STORES);
  return {
    create: ({ account_id: accountId = 0, name, external_id: own }: StoreDraft) => {
      // Id 0 stands for "no account selected". No account has this id, so the API answers with a validation error for
      // the field.
      const external = own.trim() === "" ? {} : { external_id: own.trim() };
      const body = { account_id: accountId, name: name.trim(), ...external };
      return inBackground(answerOf(stores.post(body)));
    },
    change: (id: number, { name, external_id: own }: StoreDraft) => {
      const body = { name: name.trim(), external_id: own.trim() === "" ? null : own.trim() };
      return inBackground(recordOf<Store>(api, "stores", id).change(body));
    },
    remove: (id: number) => inBackground(recordOf(api, "stores", id).remove()),
    connect: (storeId: number, providerId: number) =>
      inBackground(answerOf(sites.post({ store_id: storeId, provider_id: providerId }))),
    disconnect: (siteId: number) => andRead(recordOf(api, "store-review-sites", siteId).remove()),
  };
}
