import { queryOptions, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { allPages, answerOf, type ApiClient, pageAt, type QueryOf } from "../../api/client.ts";
import { recordOf } from "../../api/records.ts";
import { useApi } from "../../session/session.tsx";
import { listOptions, type RowOf, useRefresh } from "../../ui/pages.ts";
import {
  accountBody,
  type AccountDraft,
  changedAccount,
  changedPartner,
  type CompanyChoice,
  partnerBody,
  type PartnerDraft,
} from "./company-drafts.ts";

/** Types of companies that operators can create. The third company type is the platform itself. */
export type CompanyType = "partner" | "account";

type AccountFilter = QueryOf<ApiClient["admin"]["accounts"]["get"]>;
export type CompanyFilter = QueryOf<ApiClient["admin"]["partners"]["get"]>;

/** Cached names may be up to a minute old, because names rarely change. */
const NAMES_STALE_MS = 60_000;
const MAX_CHOICES = 20;

export function partnersOptions(api: ApiClient, filter: CompanyFilter) {
  return listOptions(["partners", filter], (cursor) =>
    answerOf(api.admin.partners.get({ query: { ...filter, ...pageAt(cursor) } })),
  );
}

export function accountsOptions(api: ApiClient, filter: AccountFilter) {
  return listOptions(["accounts", filter], (cursor) =>
    answerOf(api.admin.accounts.get({ query: { ...filter, ...pageAt(cursor) } })),
  );
}

export type Partner = RowOf<typeof partnersOptions>;
export type Account = RowOf<typeof accountsOptions>;

/** Reads one partner by id. */
export const partnerOptions = (api: ApiClient, id: number | null) =>
  queryOptions({
    queryKey: ["partners", "one", id],
    queryFn: () => recordOf<Partner>(api, "partners", id ?? 0).read(),
    enabled: id !== null,
  });

/** Reads one account by id, with its stores. */
export const accountOptions = (api: ApiClient, id: number | null) =>
  queryOptions({
    queryKey: ["accounts", "one", id],
    queryFn: () => recordOf<Account>(api, "accounts", id ?? 0).read(),
    enabled: id !== null,
  });

/** Reads the inactive partners, of which there are few. Nobody of their accounts can sign in either. */
export const inactivePartnersOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["partners", "inactive"],
    queryFn: () =>
      allPages((cursor) =>
        answerOf(api.admin.partners.get({ query: { is_active: "false", ...pageAt(cursor) } })),
      ),
    staleTime: NAMES_STALE_MS,
  });

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

export const plansOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["plans"],
    queryFn: () => allPages((cursor) => answerOf(api.admin.plans.get({ query: pageAt(cursor) }))),
    staleTime: NAMES_STALE_MS,
  });

/** Reads one company by id, for pages that show the company's name but only know its id. */
export const companyOptions = (api: ApiClient, id: number | null | undefined) =>
  queryOptions({
    queryKey: ["company", id],
    queryFn: () => answerOf(api.admin.companies({ id: String(id) }).get()),
    enabled: typeof id === "number",
    staleTime: NAMES_STALE_MS,
  });

/** Reads the first companies of a type whose name contains the text, as choices of a select. */
export function companyChoicesOptions(api: ApiClient, type: CompanyType, name: string) {
  const query = { limit: MAX_CHOICES, ...(name !== "" && { name }) };
  return queryOptions<CompanyChoice[]>({
    queryKey: [`${type}s`, "choices", name],
    queryFn: async () => {
      if (type === "account") return (await answerOf(api.admin.accounts.get({ query }))).data;
      const { data } = await answerOf(api.admin.partners.get({ query }));
      return data.map((one) => ({ ...one, stores: [] }));
    },
    staleTime: NAMES_STALE_MS,
    placeholderData: (before) => before,
  });
}

/** Requests that create or change companies. Each request invalidates the cached companies of their type. */
export function useCompanyActions() {
  const api = useApi();
  const { partners, accounts } = api.admin;
  const refresh = { partner: useRefresh(["partners"]), account: useRefresh(["accounts"]) };
  return {
    createPartner: (draft: PartnerDraft) =>
      refresh.partner.inBackground(answerOf(partners.post(partnerBody(draft)))),
    createAccount: (draft: AccountDraft) =>
      refresh.account.inBackground(answerOf(accounts.post(accountBody(draft)))),
    setActive: (type: CompanyType, id: number, isActive: boolean) => {
      const company = type === "partner" ? partners({ id }) : accounts({ id });
      return refresh[type].andRead(
        answerOf<unknown>(isActive ? company.activate.post() : company.deactivate.post()),
      );
    },
    changePartner: (partner: Partner, draft: PartnerDraft) =>
      refresh.partner.andRead(
        recordOf<Partner>(api, "partners", partner.id).change(changedPartner(partner, draft)),
      ),
    changeAccount: (account: Account, draft: AccountDraft) =>
      refresh.account.andRead(
        recordOf<Account>(api, "accounts", account.id).change(changedAccount(account, draft)),
      ),
    setFactorRequired: (type: CompanyType, id: number, isRequired: boolean) =>
      refresh[type].andRead(
        recordOf(api, `${type}s`, id).change({ require_second_factor: isRequired }),
      ),
  };
}
