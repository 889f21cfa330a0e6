import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";

import { allPages, answerOf, pageAt } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { useList } from "../../ui/list.tsx";
import {
  accountBody,
  partnerBody,
  type AccountDraft,
  type PartnerDraft,
} from "./company-drafts.ts";

/** Types of companies that operators can create. The third company type is the platform itself. */
export type CompanyType = "partner" | "account";

export interface CompanyFilter {
  readonly name?: string;
  readonly is_active?: "true" | "false";
}

export interface CompanyChoice {
  readonly id: number;
  readonly name: string;
  readonly stores: readonly { readonly id: number; readonly name: string }[];
}

/** Cached names may be up to a minute old, because names rarely change. */
const NAMES_STALE_MS = 60_000;
const CHOICES = 20;

export function usePartners(filter: CompanyFilter) {
  const api = useApi();
  return useList(["partners", filter], (cursor) =>
    answerOf(api.admin.partners.get({ query: { ...filter, ...pageAt(cursor) } })),
  );
}

export function useAccounts(filter: CompanyFilter & { readonly partner_id?: number }) {
  const api = useApi();
  return useList(["accounts", filter], (cursor) =>
    answerOf(api.admin.accounts.get({ query: { ...filter, ...pageAt(cursor) } })),
  );
}

export function usePartnerName(): (id: number) => string {
  const api = useApi();
  const { data } = useQuery({
    queryKey: ["partners", "names"],
    queryFn: () =>
      allPages((cursor) => answerOf(api.admin.partners.get({ query: pageAt(cursor) }))),
    staleTime: NAMES_STALE_MS,
  });
  const names = useMemo(() => new Map(data?.map((one) => [one.id, one.name])), [data]);
  return (id) => names.get(id) ?? `Partner ${id}`;
}

export function usePlans() {
  const api = useApi();
  return useQuery({
    queryKey: ["plans"],
    queryFn: () => allPages((cursor) => answerOf(api.admin.plans.get({ query: pageAt(cursor) }))),
    staleTime: NAMES_STALE_MS,
  });
}

/** Reads one company by id, for pages that show the company's name but only know its id. */
export function useCompany(id: number | null) {
  const api = useApi();
  return useQuery({
    queryKey: ["company", id],
    queryFn: () => answerOf(api.admin.companies({ id: String(id) }).get()),
    enabled: id !== null,
    staleTime: NAMES_STALE_MS,
  });
}

/** Reads the first companies of a type whose name contains the text, as choices of a select. */
export function useCompanyChoices(type: CompanyType, name: string, enabled: boolean) {
  const api = useApi();
  const query = { limit: CHOICES, ...(name !== "" && { name }) };
  return useQuery<CompanyChoice[]>({
    queryKey: [`${type}s`, "choices", name],
    queryFn: async () => {
      if (type === "account") return (await answerOf(api.admin.accounts.get({ query }))).data;
      const { data } = await answerOf(api.admin.partners.get({ query }));
      return data.map((one) => ({ ...one, stores: [] }));
    },
    enabled,
    staleTime: NAMES_STALE_MS,
    placeholderData: (before) => before,
  });
}

/** Requests that create or change companies. Each request invalidates the cached company lists. */
export function useCompanyActions() {
  const api = useApi();
  const queries = useQueryClient();
  const refresh = (type: CompanyType) => queries.invalidateQueries({ queryKey: [`${type}s`] });
  return {
    createPartner: async (draft: PartnerDraft) => {
      const partner = await answerOf(api.admin.partners.post(partnerBody(draft)));
      void refresh("partner");
      return partner;
    },
    createAccount: async (draft: AccountDraft) => {
      const account = await answerOf(api.admin.accounts.post(accountBody(draft)));
      void refresh("account");
      return account;
    },
    setActive: async (type: CompanyType, id: number, isActive: boolean) => {
      const company = type === "partner" ? api.admin.partners({ id }) : api.admin.accounts({ id });
      await answerOf<unknown>(isActive ? company.activate.post() : company.deactivate.post());
      await refresh(type);
    },
  };
}
