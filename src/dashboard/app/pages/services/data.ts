import { queryOptions } from "@tanstack/react-query";

import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";

/** Maps a scope of a service (contract 10.7) to its description for operators. */
export const SERVICE_SCOPES = {
  "actions:write": {
    title: "Record actions",
    text: "Records what users, staff and systems of the platform do with reviews, through the API or the inbox.",
  },
  "tokens:introspect": {
    title: "Check tokens",
    text: "Asks whether a token of a user is valid, and what it may do.",
  },
} as const;

type ServiceScope = keyof typeof SERVICE_SCOPES;
// The type assertion is needed because `Object.keys` returns `string[]`.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const ALL_SCOPES = Object.keys(SERVICE_SCOPES) as ServiceScope[];
export const isServiceScope = (value: string): value is ServiceScope => value in SERVICE_SCOPES;

/** Lists what a service may do in words. */
export const scopesInWords = (scopes: readonly string[]): string =>
  scopes.map((one) => (isServiceScope(one) ? SERVICE_SCOPES[one].title : one)).join(", ");

const SERVICES = ["services"];

export const servicesOptions = (api: ApiClient) =>
  listOptions([...SERVICES, "list"], (cursor) =>
    answerOf(api.admin.services.get({ query: pageAt(cursor) })),
  );

export type Service = RowOf<typeof servicesOptions>;

export const serviceOptions = (api: ApiClient, id: number) =>
  queryOptions({
    queryKey: [...SERVICES, id],
    queryFn: () => answerOf(api.admin.services({ id }).get()),
  });

export const serviceTokensOptions = (api: ApiClient, id: number) =>
  listOptions([...SERVICES, id, "tokens"], (cursor) =>
    answerOf(api.admin.services({ id }).tokens.get({ query: pageAt(cursor) })),
  );

export type ServiceToken = RowOf<typeof serviceTokensOptions>;

/** Values of the form for a service before they are sent. */
export interface ServiceDraft {
  readonly name: string;
  readonly scopes: readonly ServiceScope[];
  readonly isForAll: boolean;
  readonly partner_ids: readonly number[];
}

export const serviceDraft = ({ name, scopes, partner_ids: ids }: Service): ServiceDraft => ({
  name,
  scopes: scopes.filter(isServiceScope),
  isForAll: ids === null,
  partner_ids: ids ?? [],
});

const bodyOf = (draft: ServiceDraft) => ({
  name: draft.name.trim(),
  scopes: [...draft.scopes],
  partner_ids: draft.isForAll ? null : [...draft.partner_ids],
});

/** Requests that create, change and end services. Each request invalidates the cached services. */
export function useServiceActions() {
  const { services } = useApi().admin;
  const { inBackground } = useRefresh(SERVICES);
  return {
    create: (draft: ServiceDraft) => inBackground(answerOf(services.post(bodyOf(draft)))),
    change: (id: number, draft: ServiceDraft) =>
      inBackground(answerOf(services({ id }).patch(bodyOf(draft)))),
    remove: (id: number) => inBackground(answerOf(services({ id }).delete())),
  };
}

export interface TokenDraft {
  readonly name: string;
  readonly days: string;
}

export const DAY_MS = 86_400_000;

/** Returns the end of a token that lives for a number of days from now. */
export const endAfter = (days: string): string =>
  new Date(Date.now() + Number(days) * DAY_MS).toISOString();

/** Requests that create and revoke tokens of a service. */
export function useServiceTokenActions(id: number) {
  const { tokens } = useApi().admin.services({ id });
  const { inBackground, andRead } = useRefresh([...SERVICES, id]);
  return {
    create: ({ name, days }: TokenDraft) =>
      inBackground(answerOf(tokens.post({ name: name.trim(), expires_at: endAfter(days) }))),
    revoke: (tokenId: string) => andRead(answerOf(tokens({ tokenId }).delete())),
  };
}
