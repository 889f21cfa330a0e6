import { useCompany } from "./data.ts";

export function CompanyName({ id }: { readonly id: number | null }) {
  const { data } = useCompany(id);
  if (id === null) return "–";
  return data?.name ?? `Company ${id}`;
}
