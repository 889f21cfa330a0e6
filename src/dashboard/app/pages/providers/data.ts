import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { recordOf } from "../../api/records.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

/** Secret of a provider. The API returns it only when it is created or rotated. */
export interface ProviderSecret {
  readonly name: string;
  readonly secret: string;
}

/** Values of the form for a provider before they are sent. */
export interface ProviderDraft {
  readonly name: string;
  readonly slug: string;
  readonly requires_timestamp: boolean;
}

export const providersOptions = (api: ApiClient) =>
  listOptions(["providers"], (cursor) =>
    answerOf(api.admin.providers.get({ query: pageAt(cursor) })),
  );

export type Provider = RowOf<typeof providersOptions>;

/** Requests that create, change and delete providers. Each request invalidates the cached provider list. */
export function useProviderActions() {
  const api = useApi();
  const { providers } = api.admin;
  const { inBackground, andRead } = useRefresh(["providers"]);
  return {
    create: ({ name, slug, ...draft }: ProviderDraft): Promise<ProviderSecret> =>
      inBackground(answerOf(providers.post({ ...draft, name: name.trim(), slug: slug.trim() }))),
    change: (id: number, { name, requires_timestamp }: ProviderDraft) =>
      inBackground(
        recordOf<Provider>(api, "providers", id).change({ name: name.trim(), requires_timestamp }),
      ),
    rotateSecret: (id: number, hours: number): Promise<ProviderSecret> =>
      inBackground(answerOf(providers({ id }).secret.post({ grace_period_hours: hours }))),
    remove: (id: number) => andRead(recordOf(api, "providers", id).remove()),
  };
}
