import { queryOptions } from "@tanstack/react-query";

import { answerOf, type ApiClient, pageAt } from "../../api/client.ts";
import { recordOf } from "../../api/records.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";
import type { CompanyType } from "../companies/data.ts";
import { erasureBody, type ErasureDraft } from "./erasure-draft.ts";

const ERASURES = ["erasures"];
const DELETIONS = ["deletions"];
const READ_AGAIN_MS = 5_000;

export const erasuresOptions = (api: ApiClient) => ({
  ...listOptions(ERASURES, (cursor) => answerOf(api.admin.erasures.get({ query: pageAt(cursor) }))),
  refetchInterval: READ_AGAIN_MS,
});

export type Erasure = RowOf<typeof erasuresOptions>;

export function useErase() {
  const { erasures } = useApi().admin;
  const { inBackground } = useRefresh(ERASURES);
  return (draft: ErasureDraft) => inBackground(answerOf(erasures.post(erasureBody(draft))));
}

export const deletionsOptions = (api: ApiClient) => ({
  ...listOptions(DELETIONS, async (cursor) => {
    const { data, ...page } = await answerOf(api.admin.deletions.get({ query: pageAt(cursor) }));
    return { ...page, data: data.map((one) => ({ ...one, id: one.company.id })) };
  }),
  refetchInterval: READ_AGAIN_MS,
});

const MAX_PAGE = 100;

/** Reads the deletion of a company if it is among the next ones; null if there is none. */
export const deletionOfOptions = (api: ApiClient, id: number) =>
  queryOptions({
    queryKey: [...DELETIONS, "of", id],
    queryFn: async () => {
      const query = { limit: MAX_PAGE };
      const { data } = await answerOf(api.admin.deletions.get({ query }));
      return data.find(({ company }) => company.id === id) ?? null;
    },
  });

export type CompanyDeletion = RowOf<typeof deletionsOptions>;

interface Company {
  readonly id: number;
  readonly name: string;
  readonly is_active: boolean;
}

/** Reads a partner or an account, for the question whether it is active. */
export const leavingOptions = (api: ApiClient, type: CompanyType, id: number) =>
  queryOptions({
    queryKey: [`${type}s`, "one", id],
    queryFn: () => recordOf<Company>(api, type === "partner" ? "partners" : "accounts", id).read(),
  });

/** Requests that schedule and cancel the deletion of a company. */
export function useDeletionActions() {
  const { partners, accounts } = useApi().admin;
  const { inBackground, andRead } = useRefresh(DELETIONS);
  const routeOf = (type: string, id: number) =>
    (type === "partner" ? partners({ id }) : accounts({ id })).deletion;
  return {
    request: (type: CompanyType, id: number, name: string) =>
      inBackground(answerOf(routeOf(type, id).post({ name }))),
    cancel: ({ company: { type, id } }: CompanyDeletion) =>
      andRead(answerOf(routeOf(type, id).delete())),
  };
}
