import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { useApi } from "../../session.tsx";
import { allPages } from "../../ui/all-pages.ts";

type Api = ReturnType<typeof useApi>;
const loadUsers = (api: Api) => api.call("GET", "/admin/users", {});
export type User = Awaited<ReturnType<typeof loadUsers>>["data"][number];

/** For names alone: they hardly change. */
const NAMES_STALE_MS = 60_000;

export function usePartnerName(): (id: number) => string {
  const api = useApi();
  const { data } = useQuery({
    queryKey: ["partners", "names"],
    queryFn: () =>
      allPages((cursor) =>
        api.call("GET", "/admin/partners", { query: { limit: 100, ...(cursor && { cursor }) } }),
      ),
    staleTime: NAMES_STALE_MS,
  });
  const names = useMemo(() => new Map(data?.map((one) => [one.id, one.name])), [data]);
  return (id) => names.get(id) ?? `Partner ${id}`;
}

export function usePlans() {
  const api = useApi();
  return useQuery({
    queryKey: ["plans"],
    queryFn: () => api.call("GET", "/admin/plans", {}),
    staleTime: NAMES_STALE_MS,
  });
}

/** One user by number, for the places that know no more. */
export function useUser(id: number | null) {
  const api = useApi();
  return useQuery({
    queryKey: ["user", id],
    queryFn: () => api.call("GET", "/admin/users/:id", { params: { id: String(id) } }),
    enabled: id !== null,
    staleTime: NAMES_STALE_MS,
  });
}

/** The same of a company. */
export function useCompany(id: number | null) {
  const api = useApi();
  return useQuery({
    queryKey: ["company", id],
    queryFn: () => api.call("GET", "/admin/companies/:id", { params: { id: String(id) } }),
    enabled: id !== null,
    staleTime: NAMES_STALE_MS,
  });
}

const CHOICES = 20;

export interface CompanyChoice {
  readonly id: number;
  readonly name: string;
  readonly stores: readonly { readonly id: number; readonly name: string }[];
}

/** The first companies of a type whose name has this part. */
export function useCompanyChoices(type: "partner" | "account", name: string, enabled: boolean) {
  const api = useApi();
  const query = { limit: CHOICES, ...(name !== "" && { name }) };
  return useQuery<CompanyChoice[]>({
    queryKey: [`${type}s`, "choices", name],
    queryFn: async () => {
      if (type === "account") return (await api.call("GET", "/admin/accounts", { query })).data;
      const { data } = await api.call("GET", "/admin/partners", { query });
      return data.map((one) => ({ ...one, stores: [] }));
    },
    enabled,
    staleTime: NAMES_STALE_MS,
    placeholderData: (before) => before,
  });
}
