import { MultiSelect } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import "@mantine/core/styles/Pill.css";
import "@mantine/core/styles/PillsInput.css";
import { useApi } from "../../session/session.tsx";
import { optionOf } from "./company-select.tsx";
import { companyChoicesOptions, companyOptions } from "./data.ts";

interface PartnersFieldProps {
  readonly value: readonly number[];
  readonly onChange: (ids: number[]) => void;
  readonly error: string | undefined;
}

const TYPING_MS = 250;

/** Selects several partners by name. The server runs the search, because there may be thousands of partners. */
export function PartnersField({ value, onChange, error }: PartnersFieldProps) {
  const api = useApi();
  const [search, setSearch] = useState("");
  const [typed] = useDebouncedValue(search.trim(), TYPING_MS);
  const found = useQuery(companyChoicesOptions(api, "partner", typed)).data ?? [];
  const chosen = useQueries({ queries: value.map((id) => companyOptions(api, id)) });
  const names = new Map([
    ...found.map(({ id, name }) => [id, name] as const),
    ...value.map((id, i) => [id, chosen[i]?.data?.name ?? `Partner ${id}`] as const),
  ]);
  return (
    <MultiSelect
      label="Chosen partners"
      placeholder="Type a name"
      required
      searchable
      data={[...names].map(([id, name]) => ({ value: String(id), label: name }))}
      renderOption={optionOf(found)}
      nothingFoundMessage="No partner has this name"
      searchValue={search}
      onSearchChange={setSearch}
      value={value.map(String)}
      error={error}
      onChange={(ids) => onChange(ids.map(Number))}
    />
  );
}
