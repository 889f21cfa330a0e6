import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { useApi, useSession } from "../../session/session.tsx";
import { Dimmed } from "../../ui/layout.tsx";
import { ChoiceFilter, type FilterField } from "../../ui/filters.tsx";
import type { CompanyChoice } from "./company-drafts.ts";
import { companyChoicesOptions, companyOptions, type CompanyType } from "./data.ts";

type AnyType = CompanyType | "platform";

interface CompanySelectProps {
  readonly label: string;
  readonly types: readonly AnyType[];
  readonly value: number | undefined;
  readonly onChange: (company: CompanyChoice | undefined) => void;
  readonly placeholder?: string;
  readonly error?: string | undefined;
  readonly required?: boolean;
  /** True if the field takes the focus when its dialog opens. */
  readonly isFirst?: boolean;
}

const GROUPS = { platform: "Platform", partner: "Partners", account: "Accounts" } as const;
const TYPING_MS = 250;

/** Selects a company by name. The server runs the search, because there may be thousands of companies. */
export function CompanySelect(props: CompanySelectProps) {
  const { label, types, value, onChange, placeholder = "Type a name", error, required } = props;
  const api = useApi();
  const { company: own } = useSession();
  const [search, setSearch] = useState("");
  const { data: chosen } = useQuery(companyOptions(api, value));
  // Skips the search while the field shows the name of the selected company, because the user did not type that text.
  const [typed] = useDebouncedValue(search === chosen?.name ? "" : search.trim(), TYPING_MS);
  const choicesOf = (type: CompanyType) => ({
    ...companyChoicesOptions(api, type, typed),
    enabled: types.includes(type),
  });
  const partners = useQuery(choicesOf("partner"));
  const accounts = useQuery(choicesOf("account"));
  const found: Record<AnyType, readonly CompanyChoice[]> = {
    platform: [{ id: own.id, name: own.name, stores: [] }],
    partner: partners.data ?? [],
    account: accounts.data ?? [],
  };
  const choices = types.flatMap((type) => found[type]);
  const isListed = value === undefined || choices.some(({ id }) => id === value);
  const current = { id: value ?? 0, name: chosen?.name ?? `Company ${value}` };
  const groups = types.map((type) => ({ group: GROUPS[type], items: found[type].map(itemOf) }));
  return (
    <Select
      label={label}
      placeholder={placeholder}
      searchable
      clearable={required !== true}
      required={required === true}
      data={[...(isListed ? [] : [itemOf(current)]), ...groups]}
      filter={({ options }) => options}
      renderOption={optionOf(choices)}
      nothingFoundMessage="No company has this name"
      searchValue={search}
      onSearchChange={setSearch}
      value={value === undefined ? null : String(value)}
      data-autofocus={props.isFirst || undefined}
      error={error}
      onChange={(id) => onChange(choices.find((one) => String(one.id) === id))}
    />
  );
}

const itemOf = ({ id, name }: Pick<CompanyChoice, "id" | "name">) => ({
  value: String(id),
  label: name,
});

/** Returns a function that renders an option of a select of companies, and marks the inactive ones. */
export const optionOf = (choices: readonly CompanyChoice[]) =>
  function CompanyOption({ option }: { readonly option: { value: string; label: string } }) {
    const isInactive = choices.some(
      (one) => String(one.id) === option.value && one.is_active === false,
    );
    return (
      <span>
        {option.label}
        {isInactive && <Dimmed span> (inactive)</Dimmed>}
      </span>
    );
  };

export function CompanyName({ id }: { readonly id: number | null }) {
  const { data } = useQuery(companyOptions(useApi(), id));
  if (id === null) return "–";
  return data?.name ?? `Company ${id}`;
}

export function ActiveFilter(props: FilterField) {
  return (
    <ChoiceFilter
      label="State"
      any="Active or inactive"
      choices={[
        ["true", "Active"],
        ["false", "Inactive"],
      ]}
      {...props}
    />
  );
}

/** Returns the `is_active` query parameter of the API for the filter's value. */
export function activeQuery(value: string | undefined): { readonly is_active?: "true" | "false" } {
  const isActive = (["true", "false"] as const).find((one) => one === value);
  return isActive === undefined ? {} : { is_active: isActive };
}
